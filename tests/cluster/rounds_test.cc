// SPDX-License-Identifier: Apache-2.0
// Coordinated reads: rounds that all consumers see alike, whatever goes away.
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "control/observe/metrics.h"
#include "tests/cluster/cluster.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

// What one consumer saw of a round.
struct Seen {
  StepToken token;
  int64_t value = 0;
};

struct Read {
  std::vector<Seen> rounds;
  absl::Status error;  // that ended it
};

DistributeOptions Consumer(const Cluster& cluster, int64_t index, int64_t consumers,
                           ShardingPolicy mode, const std::string& job = "rounds") {
  DistributeOptions options = cluster.Options(mode, job);
  options.consumer_index = index;
  options.num_consumers = consumers;
  options.timeout = absl::Seconds(20);
  return options;
}

Dataset Numbers(int64_t count) {
  return Dataset::Range(count).Map([](auto x) { return x + 0; });
}

// Reads to the end, an error, or `most` rounds. `at` is called before each step.
Read ReadRounds(Iterator& it, int64_t most = INT64_MAX,
                const std::function<void(int64_t)>& at = nullptr) {
  Read read;
  for (int64_t step = 0; step < most; ++step) {
    if (at) at(step);
    absl::StatusOr<std::optional<Element>> element = it.Next();
    if (!element.ok()) {
      read.error = element.status();
      break;
    }
    if (!element->has_value()) break;
    read.rounds.push_back({StepTokenOf(**element), (*element)->tensor(0).scalar<int64_t>()});
  }
  return read;
}

// Each consumer on a thread of its own.
std::vector<Read> ReadTogether(std::vector<Iterator>& consumers, int64_t most = INT64_MAX,
                               const std::function<void(int64_t)>& at_of_first = nullptr) {
  std::vector<std::future<Read>> reading;
  for (size_t i = 0; i < consumers.size(); ++i) {
    reading.push_back(std::async(std::launch::async, [&, i] {
      return ReadRounds(consumers[i], most, i == 0 ? at_of_first : nullptr);
    }));
  }
  std::vector<Read> reads;
  for (auto& read : reading) reads.push_back(read.get());
  return reads;
}

std::vector<Iterator> Consumers(const Cluster& cluster, int64_t count, const Dataset& dataset,
                                ShardingPolicy mode,
                                const std::function<void(DistributeOptions&)>& set = nullptr) {
  std::vector<Iterator> consumers;
  for (int64_t i = 0; i < count; ++i) {
    DistributeOptions options = Consumer(cluster, i, count, mode);
    if (set) set(options);
    absl::StatusOr<Iterator> it = dataset.Distribute(options).MakeIterator();
    EXPECT_TRUE(it.ok()) << it.status();
    consumers.push_back(*std::move(it));
  }
  return consumers;
}

// Rounds in order without gaps; in each, one partition and turn; as many for all.
void ExpectAligned(const std::vector<Read>& reads, int64_t first = 0, int64_t rests = 0) {
  for (size_t i = 0; i < reads.size(); ++i) {
    EXPECT_EQ(reads[i].rounds.size(), reads[0].rounds.size()) << "consumer " << i;
    const size_t rounds = std::min(reads[i].rounds.size(), reads[0].rounds.size());
    for (size_t r = 0; r < rounds; ++r) {
      const StepToken& token = reads[i].rounds[r].token;
      ASSERT_EQ(token.round, first + static_cast<int64_t>(r)) << "consumer " << i;
      ASSERT_EQ(token.consumer, static_cast<int64_t>(i));
      if (r + static_cast<size_t>(rests) >= rounds) continue;
      ASSERT_EQ(token.partition, reads[0].rounds[r].token.partition) << "round " << r;
      ASSERT_EQ(token.index, reads[0].rounds[r].token.index + static_cast<int64_t>(i));
    }
  }
}

std::vector<int64_t> Values(const std::vector<Read>& reads, bool pads = false) {
  std::vector<int64_t> values;
  for (const Read& read : reads)
    for (const Seen& seen : read.rounds)
      if (pads || !seen.token.pad) values.push_back(seen.value);
  return Sorted(std::move(values));
}

std::vector<int64_t> UpTo(int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) all[static_cast<size_t>(i)] = i;
  return all;
}

class RoundsTest : public ::testing::TestWithParam<int64_t> {};

TEST_P(RoundsTest, AllConsumersSeeTheSameRounds) {
  const int64_t consumers = GetParam();
  Cluster cluster(2);
  auto its = Consumers(cluster, consumers, Numbers(400), ShardingPolicy::kDynamic);
  const std::vector<Read> reads = ReadTogether(its);
  for (const Read& read : reads) EXPECT_TRUE(read.error.ok()) << read.error;
  ExpectAligned(reads, 0, /*rests=*/1);
  EXPECT_EQ(Values(reads), UpTo(400));
}
INSTANTIATE_TEST_SUITE_P(Consumers, RoundsTest, ::testing::Values(1, 2, 4));

TEST(Rounds, EveryWorkerReadsTheWholeUnderOff) {
  Cluster cluster(2);
  auto its = Consumers(cluster, 2, Numbers(100), ShardingPolicy::kOff);
  const std::vector<Read> reads = ReadTogether(its);
  ExpectAligned(reads);
  std::vector<int64_t> twice = UpTo(100);
  twice.insert(twice.end(), twice.begin(), twice.end());
  EXPECT_EQ(Values(reads), Sorted(twice));
}

struct RestCase {
  Rests rests;
  int64_t rounds;    // that elements come of
  int64_t elements;  // that are no pads
  int64_t pads;
};
class RestsTest : public ::testing::TestWithParam<RestCase> {};

// Two whole passes of 11 elements for 4 consumers: rests of 3 and 3 together make one
// whole round, and 2 elements of another.
TEST_P(RestsTest, AtMostOneRoundIsNotFilled) {
  const RestCase& its = GetParam();
  Cluster cluster(2);
  auto consumers = Consumers(cluster, 4, Numbers(11), ShardingPolicy::kOff,
                             [&](DistributeOptions& options) { options.rests = its.rests; });
  const std::vector<Read> reads = ReadTogether(consumers);
  ExpectAligned(reads, 0, /*rests=*/2);
  std::map<int64_t, int64_t> pads;
  for (const Read& read : reads) {
    EXPECT_EQ(read.rounds.size(), static_cast<size_t>(its.rounds));
    EXPECT_EQ(absl::IsOutOfRange(read.error), its.rests == Rests::kError) << read.error;
    for (const Seen& seen : read.rounds) pads[seen.token.round] += seen.token.pad ? 1 : 0;
  }
  EXPECT_EQ(static_cast<int64_t>(Values(reads).size()), its.elements);
  EXPECT_EQ(static_cast<int64_t>(Values(reads, /*pads=*/true).size()), its.elements + its.pads);
  if (its.pads > 0) {
    EXPECT_EQ(pads[its.rounds - 1], its.pads);
  }
}
INSTANTIATE_TEST_SUITE_P(Policies, RestsTest,
                         ::testing::Values(RestCase{Rests::kPad, 6, 22, 2},
                                           RestCase{Rests::kDrop, 5, 20, 0},
                                           RestCase{Rests::kError, 5, 20, 0}));

TEST(Rounds, AWorkerThatGoesTakesNothingWithIt) {
  Cluster cluster(2);
  auto its = Consumers(cluster, 2, Numbers(2000), ShardingPolicy::kDynamic);
  const std::vector<Read> reads = ReadTogether(its, INT64_MAX, [&](int64_t step) {
    if (step == 100) cluster.RemoveWorker(0);
  });
  ExpectAligned(reads, 0, /*rests=*/1);
  EXPECT_EQ(Values(reads), UpTo(2000));
}

TEST(Rounds, AWorkerThatJoinsIsReadToo) {
  Cluster cluster(1);
  auto its = Consumers(cluster, 2, Numbers(2000), ShardingPolicy::kOff);
  const std::vector<Read> reads = ReadTogether(its, INT64_MAX, [&](int64_t step) {
    if (step == 20) cluster.AddWorker();
  });
  ExpectAligned(reads);
  std::set<PartitionId> partitions;
  for (const Seen& seen : reads[0].rounds) partitions.insert(seen.token.partition);
  EXPECT_EQ(partitions.size(), 2);
  EXPECT_EQ(Values(reads).size(), 4000);
}

TEST(Rounds, GoOnBehindARestartedDispatcher) {
  DispatcherConfig config;
  config.work_dir = ::testing::TempDir() + "/rounds_restart";
  std::filesystem::remove_all(config.work_dir);
  config.fault_tolerant_mode = true;
  Cluster cluster(2, config);
  auto its = Consumers(cluster, 2, Numbers(2000), ShardingPolicy::kDynamic);
  const std::vector<Read> reads = ReadTogether(its, INT64_MAX, [&](int64_t step) {
    if (step == 100 || step == 300) cluster.RestartDispatcher();
  });
  ExpectAligned(reads, 0, /*rests=*/1);
  EXPECT_EQ(Values(reads), UpTo(2000));
}

TEST(Rounds, ALateConsumerIsRefusedInWords) {
  Cluster cluster(1);
  auto its = Consumers(cluster, 2, Numbers(1000), ShardingPolicy::kDynamic);
  ReadTogether(its, 10);
  auto again =
      Numbers(1000).Distribute(Consumer(cluster, 1, 2, ShardingPolicy::kDynamic)).MakeIterator();
  ASSERT_TRUE(again.ok());
  auto element = again->Next();
  EXPECT_EQ(element.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(element.status().message()), HasSubstr("consumer_index"));
  ASSERT_TRUE(its[1].Stop().ok());
  auto later =
      Numbers(1000).Distribute(Consumer(cluster, 1, 2, ShardingPolicy::kDynamic)).MakeIterator();
  ASSERT_TRUE(later.ok());
  element = later->Next();
  EXPECT_EQ(element.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(element.status().message()), HasSubstr("without a state"));
}

TEST(Rounds, SaysWhichConsumerIsMissing) {
  Cluster cluster(1);
  DistributeOptions options = Consumer(cluster, 0, 2, ShardingPolicy::kDynamic);
  options.timeout = absl::Seconds(1);
  auto it = Numbers(100).Distribute(options).MakeIterator();
  ASSERT_TRUE(it.ok());
  auto element = it->Next();
  EXPECT_EQ(element.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(element.status().message()), HasSubstr("consumer 1 has not joined"));
}

// Calls of Next() that waited for a worker's element, of all sessions in this process.
double Waits() {
  double waits = 0;
  const std::string page = ProcessMetrics().Render();
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    if (!absl::StartsWith(line, "penstock_client_waits_total{")) continue;
    double of_worker = 0;
    EXPECT_TRUE(absl::SimpleAtod(line.substr(line.rfind(' ') + 1), &of_worker)) << line;
    waits += of_worker;
  }
  return waits;
}

TEST(Rounds, WhatAStepWaitedForIsCounted) {
  Cluster cluster(1);
  const double before = Waits();
  auto its = Consumers(cluster, 2, Numbers(100), ShardingPolicy::kDynamic);
  ReadTogether(its);
  EXPECT_GE(Waits() - before, 2);  // each waits for its first element at least
}

TEST(Rounds, AnErrorIsTheWholeRounds) {
  Cluster cluster(2);
  const Dataset dataset =
      Dataset::Range(200).Map([](auto x) { return Where(x == 77, x / (x - 77), x); });
  auto its = Consumers(cluster, 2, dataset, ShardingPolicy::kDynamic);
  std::vector<std::vector<std::string>> errors(2);
  std::vector<std::future<int64_t>> reading;
  for (size_t i = 0; i < 2; ++i) {
    reading.push_back(std::async(std::launch::async, [&, i] {
      int64_t elements = 0;
      while (true) {
        auto element = its[i].Next();
        if (element.ok() && !element->has_value()) return elements;
        if (element.ok()) {
          ++elements;
        } else {
          errors[i].push_back(std::string(element.status().message()));
          if (errors[i].size() > 3) return elements;
        }
      }
    }));
  }
  for (auto& read : reading) EXPECT_EQ(read.get(), 99);
  ASSERT_EQ(errors[0].size(), 1);
  EXPECT_EQ(errors[0], errors[1]);
  EXPECT_THAT(errors[0][0], HasSubstr("of consumer "));
}

TEST(Rounds, AllConsumersGoBackToStatesOfOneStep) {
  Cluster cluster(2);
  const auto committed = [](DistributeOptions& options) { options.keep = Keep::kCommitted; };
  std::vector<Read> before;
  std::vector<State> states;
  {
    auto its = Consumers(cluster, 2, Numbers(1000), ShardingPolicy::kDynamic, committed);
    before = ReadTogether(its, 50);
    for (Iterator& it : its) states.push_back(*it.Save());
    for (size_t i = 0; i < its.size(); ++i) ASSERT_TRUE(its[i].Commit(states[i]).ok());
    ReadTogether(its, 30);  // and is lost with the processes
  }
  auto its = Consumers(cluster, 2, Numbers(1000), ShardingPolicy::kDynamic, committed);
  for (size_t i = 0; i < its.size(); ++i) ASSERT_TRUE(its[i].Restore(states[i]).ok());
  const std::vector<Read> after = ReadTogether(its);
  ExpectAligned(after, 50, /*rests=*/1);
  std::vector<int64_t> all = Values(before);
  for (int64_t value : Values(after)) all.push_back(value);
  EXPECT_EQ(Sorted(all), UpTo(1000));
}

TEST(Rounds, StatesOfDifferentStepsAreNoPlaceToGoOnFrom) {
  Cluster cluster(1);
  const auto committed = [](DistributeOptions& options) {
    options.keep = Keep::kCommitted;
    options.timeout = absl::Seconds(1);
  };
  std::vector<State> states;
  {
    auto its = Consumers(cluster, 2, Numbers(1000), ShardingPolicy::kDynamic, committed);
    ReadTogether(its, 10);
    states.push_back(*its[0].Save());
    ReadTogether(its, 5);
    states.push_back(*its[1].Save());
  }
  auto its = Consumers(cluster, 2, Numbers(1000), ShardingPolicy::kDynamic, committed);
  for (size_t i = 0; i < its.size(); ++i) ASSERT_TRUE(its[i].Restore(states[i]).ok());
  for (const Read& read : ReadTogether(its)) {
    EXPECT_THAT(read.error.message(), HasSubstr("states of one step"));
  }
}

// X9: as many batches of one length in a row as there are consumers.
TEST(Rounds, BatchesOfOneRoundAreOfOneBucket) {
  constexpr int64_t kConsumers = 2;
  Cluster cluster(2);
  const Dataset dataset = Dataset::Range(512)
                              .Map([](auto x) { return x % 4; })
                              .GroupByWindow([](auto x) { return x; }, 8 * kConsumers)
                              .Batch()
                              .Unbatch()
                              .Batch(8)
                              .Repeat();
  auto its = Consumers(cluster, kConsumers, dataset, ShardingPolicy::kOff);
  std::vector<std::future<std::vector<int64_t>>> reading;
  for (Iterator& it : its) {
    reading.push_back(std::async(std::launch::async, [&it] {
      std::vector<int64_t> keys;
      for (int64_t step = 0; step < 100; ++step) {
        auto element = it.Next(step);
        if (!element.ok() || !element->has_value()) break;
        keys.push_back((*element)->tensor(0).data<int64_t>()[0]);
      }
      return keys;
    }));
  }
  const std::vector<int64_t> first = reading[0].get();
  EXPECT_EQ(first.size(), 100);
  EXPECT_EQ(first, reading[1].get());
}

}  // namespace
}  // namespace penstock
