// SPDX-License-Identifier: Apache-2.0
// Several readers of one named job: their shares, the elements they hold, repetitions, latecomers.
#include <atomic>
#include <future>
#include <string>

#include "absl/time/clock.h"
#include "control/observe/metrics.h"
#include "control/stub/dispatcher_stub.h"
#include "tests/cluster/cluster.h"
#include "tests/eventually.h"

namespace penstock {
namespace {

using ::testing::IsEmpty;

// Returns the next value; nullopt at the end.
std::optional<int64_t> NextOf(Iterator& it) {
  absl::StatusOr<std::optional<Element>> element = it.Next();
  EXPECT_TRUE(element.ok()) << element.status();
  if (!element.ok() || !element->has_value()) return std::nullopt;
  return (*element)->tensor(0).scalar<int64_t>();
}

// Two readers that step regularly, one of them three times as often.
TEST(SharedJobs, SharesFollowSpeedsAndAllEndTogether) {
  constexpr int kElements = 400;
  Cluster cluster(2);
  DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "shared");
  options.max_outstanding_requests = 1;
  Iterator slow = IteratorOf(Dataset::Range(kElements).Distribute(options));
  Iterator fast = IteratorOf(Dataset::Range(kElements).Distribute(options));
  std::vector<int64_t> values;
  int of_slow = 0, of_fast = 0;
  bool ended = false;
  while (!ended) {
    for (int turn = 0; turn < 4 && !ended; ++turn) {
      const std::optional<int64_t> value = NextOf(turn == 0 ? slow : fast);
      ended = !value.has_value();
      if (ended) break;
      values.push_back(*value);
      ++(turn == 0 ? of_slow : of_fast);
    }
  }
  int rest = 0;  // the reader that did not end first
  for (Iterator* it : {&slow, &fast}) {
    while (std::optional<int64_t> value = NextOf(*it)) {
      values.push_back(*value);
      ++rest;
    }
  }
  EXPECT_LE(rest, 1);
  EXPECT_NEAR(of_slow, kElements / 4, 2);
  EXPECT_NEAR(of_fast, kElements * 3 / 4, 2);
  EXPECT_EQ(Sorted(values), UpTo(kElements));
}

TEST(SharedJobs, NeverHoldMoreThanMayBeOutstanding) {
  Cluster cluster(8);
  const Gauge& most = ProcessMetrics().GetGauge("penstock_client_elements_held_most", "");
  for (const int64_t n : {1, 4, 64}) {
    DistributeOptions options = cluster.Options(ShardingPolicy::kOff);
    options.max_outstanding_requests = n;
    EXPECT_EQ(ReadAll(Dataset::Range(500).Distribute(options)).size(), 8 * 500u);
    EXPECT_GE(most.value(), 1);
    EXPECT_LE(most.value(), n);
  }
}

TEST(SharedJobs, IteratorsOfOneProcessHaveEachElementOnceTogether) {
  Cluster cluster(2);
  const DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "inside");
  std::vector<Iterator> iterators;
  // Each is the first reader of its dataset.
  for (int i = 0; i < 3; ++i)
    iterators.push_back(IteratorOf(Dataset::Range(5000).Distribute(options)));
  std::vector<std::future<std::vector<int64_t>>> reading;
  for (Iterator& it : iterators) {
    reading.push_back(std::async(std::launch::async, [&it] { return ReadAll(it); }));
  }
  std::vector<int64_t> values;
  for (auto& part : reading) {
    for (int64_t value : part.get()) values.push_back(value);
  }
  EXPECT_EQ(Sorted(values), UpTo(5000));
}

TEST(SharedJobs, EachRepetitionIsSharedByItself) {
  Cluster cluster(2);
  const DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "repeated");
  auto reads = [&] {
    return std::async(std::launch::async, [options] {
      Iterator it = IteratorOf(Dataset::Range(300).Distribute(options).Repeat(2));
      return ReadAll(it);
    });
  };
  auto a = reads(), b = reads();
  std::vector<int64_t> values = a.get(), others = b.get();
  values.insert(values.end(), others.begin(), others.end());
  std::vector<int64_t> twice = UpTo(300);
  const std::vector<int64_t> once = twice;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(Sorted(values), Sorted(twice));
}

TEST(SharedJobs, ALateReaderGetsNothingOfFinishedPasses) {
  Cluster cluster(1);
  const DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "over");
  EXPECT_EQ(ReadAll(Dataset::Range(100).Distribute(options)).size(), 100u);
  EXPECT_THAT(ReadAll(Dataset::Range(100).Distribute(options)), IsEmpty());
  // The second repetition is there for it all the same.
  EXPECT_EQ(ReadAll(Dataset::Range(100).Distribute(options).Repeat(2)).size(), 100u);
}

TEST(SharedJobs, IteratorsOfOneDatasetGoOnWithTheNextRepetition) {
  Cluster cluster(1);
  const Dataset dataset =
      Dataset::Range(100).Distribute(cluster.Options(ShardingPolicy::kDynamic, "again"));
  EXPECT_EQ(ReadAll(dataset).size(), 100u);
  EXPECT_EQ(ReadAll(dataset).size(), 100u);
}

TEST(SharedJobs, AnotherIteratorOfADatasetReadsTheNextRepetition) {
  Cluster cluster(1);
  const DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "early");
  const Dataset dataset = Dataset::Range(100).Distribute(options);
  Iterator first = IteratorOf(dataset), second = IteratorOf(dataset);
  std::vector<int64_t> of_first = {NextOf(first).value_or(-1)};
  EXPECT_EQ(Sorted(ReadAll(second)), UpTo(100));
  const std::vector<int64_t> rest = ReadAll(first);
  of_first.insert(of_first.end(), rest.begin(), rest.end());
  EXPECT_EQ(Sorted(of_first), UpTo(100));
  EXPECT_EQ(Sorted(ReadAll(dataset)), UpTo(100));
}

// All elements of the first worker had been received.
TEST(SharedJobs, AWorkerAddedInMidJobIsRead) {
  constexpr int kElements = 104;
  Cluster cluster(1);
  const DistributeOptions options = cluster.Options(ShardingPolicy::kOff, "more");
  Iterator it = IteratorOf(Dataset::Range(kElements).Distribute(options));
  std::vector<int64_t> values = {NextOf(it).value_or(-1)};
  auto stub = control::DispatcherStub::Make(cluster.service());
  ASSERT_TRUE(stub.ok()) << stub.status();
  const auto received = [&] {
    const auto links = (*stub)->GetStatus({.timeout = absl::Minutes(1)})->links;
    return links.empty() ? 0 : links[0].counts.elements;
  };
  ASSERT_TRUE(Eventually([&] { return received() >= kElements; }));
  cluster.AddWorker();
  const std::vector<int64_t> rest = ReadAll(it);
  values.insert(values.end(), rest.begin(), rest.end());
  std::vector<int64_t> twice;
  for (int64_t value = 0; value < kElements; ++value) twice.insert(twice.end(), 2, value);
  EXPECT_EQ(Sorted(values), twice);
}

TEST(SharedJobs, ALateReaderSharesTheRest) {
  Cluster cluster(1);
  DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "late");
  options.max_outstanding_requests = 1;
  Iterator early = IteratorOf(Dataset::Range(200).Distribute(options));
  std::vector<int64_t> values;
  for (int i = 0; i < 100; ++i) values.push_back(NextOf(early).value_or(-1));
  Iterator late = IteratorOf(Dataset::Range(200).Distribute(options));
  std::vector<int64_t> of_late;
  bool ended = false;
  while (!ended) {
    for (Iterator* it : {&early, &late}) {
      const std::optional<int64_t> value = NextOf(*it);
      ended |= !value.has_value();
      if (value.has_value()) (it == &late ? of_late : values).push_back(*value);
    }
  }
  EXPECT_NEAR(static_cast<double>(of_late.size()), 50, 2);
  for (Iterator* it : {&early, &late}) {
    while (std::optional<int64_t> value = NextOf(*it)) values.push_back(*value);
  }
  values.insert(values.end(), of_late.begin(), of_late.end());
  EXPECT_EQ(Sorted(values), UpTo(200));
}

TEST(SharedJobs, OneNameInTwoNamespacesIsTwoJobs) {
  Cluster cluster(1);
  DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "resnet");
  EXPECT_EQ(ReadAll(Dataset::Range(100).Distribute(options)).size(), 100u);
  options.name_space = "vision";
  EXPECT_EQ(ReadAll(Dataset::Range(100).Distribute(options)).size(), 100u);
  EXPECT_THAT(ReadAll(Dataset::Range(100).Distribute(options)), IsEmpty());
}

TEST(SharedJobs, OneOverItsQuotaOfBytesReadsOnAndIsShownSo) {
  Cluster cluster(2);
  DistributeOptions options = cluster.Options(ShardingPolicy::kOff, "bounded");
  options.quota.max_bytes_in_flight = 1024;  // a few elements
  Iterator it = IteratorOf(Dataset::Range(int64_t{1} << 40).Distribute(options));
  auto stub = control::DispatcherStub::Make(cluster.service());
  ASSERT_TRUE(stub.ok()) << stub.status();
  std::string slowed_by;
  while (slowed_by.empty()) {
    ASSERT_TRUE(NextOf(it).has_value());
    slowed_by = (*stub)->GetStatus({.timeout = absl::Minutes(1)})->jobs.at(0).slowed_by;
  }
  EXPECT_EQ(slowed_by, "max_bytes_in_flight 1024");
}

// On a worker that computes one partition at a time, with a job that never waits.
TEST(SharedJobs, AHungryJobLeavesItsNeighbourATurn) {
  Cluster cluster(0);
  cluster.AddWorker({.permits = 1});
  Iterator hungry =
      IteratorOf(Dataset::Range(int64_t{1} << 40)
                     .Distribute(cluster.Options(ShardingPolicy::kDynamic, "hungry")));
  std::atomic<bool> stop = false;
  auto reading = std::async(std::launch::async, [&] {
    while (!stop && NextOf(hungry).has_value()) {
    }
  });
  const std::vector<int64_t> all = ReadAll(
      Dataset::Range(5000).Distribute(cluster.Options(ShardingPolicy::kDynamic, "neighbour")));
  stop = true;
  reading.get();
  EXPECT_EQ(Sorted(all), UpTo(5000));
}

// On the same kind of worker.
TEST(SharedJobs, ANeighbourOfOneOverItsQuotaReadsToItsEnd) {
  Cluster cluster(0);
  cluster.AddWorker({.permits = 1});
  DistributeOptions options = cluster.Options(ShardingPolicy::kDynamic, "bounded");
  options.quota.max_bytes_in_flight = 1024;
  Iterator bounded = IteratorOf(Dataset::Range(int64_t{1} << 40).Distribute(options));
  ASSERT_TRUE(NextOf(bounded).has_value());  // and then it reads no further
  const std::vector<int64_t> all = ReadAll(
      Dataset::Range(5000).Distribute(cluster.Options(ShardingPolicy::kDynamic, "neighbour")));
  EXPECT_EQ(Sorted(all), UpTo(5000));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(NextOf(bounded).has_value());
}

}  // namespace
}  // namespace penstock
