// SPDX-License-Identifier: Apache-2.0
// order = kDeterministic: the elements of all partitions in one order, which depends only on the
// dataset, the seed and the number of partitions.
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "penstock/states_of_ranks.h"
#include "tests/cluster/cluster.h"
#include "tests/cluster/ordered_pipelines.h"
#include "tests/cluster/temporary_folder.h"

namespace penstock {
namespace {

DistributeOptions Ordered(const Cluster& cluster, ShardingPolicy mode = ShardingPolicy::kDynamic) {
  DistributeOptions options = cluster.Options(mode, "ordered");
  options.delivery = DeterministicOrder();
  options.seed = 11;
  return options;
}

// Appends up to `count` elements; returns false at the end.
bool ReadInto(Iterator& it, int64_t count, std::vector<int64_t>& values) {
  for (int64_t i = 0; i < count; ++i) {
    absl::StatusOr<std::optional<Element>> element = it.Next();
    EXPECT_TRUE(element.ok()) << element.status();
    if (!element.ok() || !element->has_value()) return false;
    values.push_back((*element)->tensor(0).scalar<int64_t>());
  }
  return true;
}

class OrderedReading : public testing::TestWithParam<Pipeline> {
 protected:
  static Dataset Job(const Cluster& cluster) {
    DistributeOptions options = Ordered(cluster);
    options.ack_mode = AckMode::kOnCommit;
    return GetParam().make().Distribute(options);
  }
  // Returns the order when nothing fails.
  static std::vector<int64_t> Undisturbed() {
    Cluster cluster(2);
    return ReadAll(Job(cluster));
  }
};

TEST_P(OrderedReading, IsTheSameOnAnyNumberOfWorkers) {
  const std::vector<int64_t> order = Undisturbed();
  EXPECT_EQ(Sorted(order), Sorted(ReadAll(GetParam().make())));
  for (int workers : {1, 5}) {
    Cluster cluster(workers);
    EXPECT_EQ(ReadAll(Job(cluster)), order) << workers << " workers";
  }
}

TEST_P(OrderedReading, IsTheSameWhicheverWorkersComeAndGo) {
  const std::vector<int64_t> order = Undisturbed();
  TemporaryFolder folder;
  Cluster cluster(2, {.work_dir = folder.path(), .fault_tolerant_mode = true});
  absl::StatusOr<Iterator> it = Job(cluster).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  std::vector<int64_t> values;
  ReadInto(*it, 300, values);
  cluster.AddWorker();
  ReadInto(*it, 300, values);
  cluster.RemoveWorker(0);
  ReadInto(*it, 300, values);
  cluster.RestartDispatcher();
  ReadInto(*it, 300, values);
  cluster.RemoveWorker(0);
  ReadInto(*it, kOrderedCount, values);
  EXPECT_EQ(values, order);
}

TEST_P(OrderedReading, IsTheSameAfterARestoreOnOtherWorkers) {
  const std::vector<int64_t> order = Undisturbed();
  std::mt19937 random(4);
  std::vector<int64_t> values;
  std::optional<State> state;
  for (int workers : {2, 5, 1}) {
    Cluster cluster(workers);
    absl::StatusOr<Iterator> it = Job(cluster).MakeIterator();
    ASSERT_TRUE(it.ok()) << it.status();
    if (state.has_value()) {
      const absl::Status restored = it->Restore(MergeRankStates({*state}));
      ASSERT_TRUE(restored.ok()) << restored;
    }
    if (workers == 1) {
      ReadInto(*it, kOrderedCount, values);
      break;
    }
    ReadInto(*it, 1 + static_cast<int64_t>(random() % 900), values);
    absl::StatusOr<State> saved = it->Save();
    ASSERT_TRUE(saved.ok()) << saved.status();
    state = *std::move(saved);
    std::vector<int64_t> struck_out;
    ReadInto(*it, static_cast<int64_t>(random() % 100), struck_out);
  }
  EXPECT_EQ(values, order);
}

INSTANTIATE_TEST_SUITE_P(Pipelines, OrderedReading,
                         testing::Values(Pipeline{"Filter", Filtered},
                                         Pipeline{"Shuffle", Shuffled},
                                         Pipeline{"ThreeWayMix", Mixed}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(OrderedReaders, FollowEachOtherAndAreNeverTwo) {
  constexpr int64_t kMoreThanAWindow = 100'000;
  Cluster cluster(2);
  // A dataset for each, as in separate processes: iterators of one dataset read one pass after the
  // other.
  const auto job = [&] { return Dataset::Range(kMoreThanAWindow).Distribute(Ordered(cluster)); };
  std::vector<int64_t> order;
  {
    Cluster other(1);
    order = ReadAll(Dataset::Range(kMoreThanAWindow).Distribute(Ordered(other)));
  }
  absl::StatusOr<Iterator> first = job().MakeIterator();
  ASSERT_TRUE(first.ok()) << first.status();
  std::vector<int64_t> values;
  ReadInto(*first, 777, values);
  absl::StatusOr<Iterator> second = job().MakeIterator();
  ASSERT_TRUE(second.ok()) << second.status();
  const absl::Status two = second->Next().status();
  EXPECT_EQ(two.code(), absl::StatusCode::kFailedPrecondition) << two;
  EXPECT_THAT(std::string(two.message()), testing::HasSubstr("which allows one reader at a time"));
  ASSERT_TRUE(first->Stop().ok());
  absl::StatusOr<Iterator> third = job().MakeIterator();
  ASSERT_TRUE(third.ok()) << third.status();
  ReadInto(*third, kMoreThanAWindow, values);
  EXPECT_EQ(values, order);
}

TEST(OrderedShards, AreAsManyAsWereAskedFor) {
  std::vector<int64_t> order;
  for (int workers : {1, 3}) {
    Cluster cluster(workers);
    DistributeOptions options = Ordered(cluster, ShardingPolicy::kData);
    options.delivery = DeterministicOrder{.partitions = 3};
    const std::vector<int64_t> values = ReadAll(Dataset::Range(100).Distribute(options));
    if (workers == 1) order = values;
    EXPECT_EQ(values, order);
  }
  std::vector<int64_t> natural(100);  // element by element, each from the next shard
  for (int64_t i = 0; i < 100; ++i) natural[static_cast<size_t>(i)] = i;
  EXPECT_EQ(order, natural);
}

TEST(OrderedWindow, MayBeAsSmallAsTheNumberOfPartitions) {
  Cluster cluster(2);
  DistributeOptions options = Ordered(cluster);
  options.delivery = DeterministicOrder{.partitions = 5};
  options.max_outstanding_requests = 5;
  const std::vector<int64_t> narrow = ReadAll(Dataset::Range(500).Distribute(options));
  EXPECT_EQ(narrow.size(), 500u);
  options.job_name = "wide";
  options.max_outstanding_requests = 0;
  EXPECT_EQ(ReadAll(Dataset::Range(500).Distribute(options)), narrow);
}

TEST(OrderedWindow, BelowTheNumberOfShardsIsRefusedWithBothNumbers) {
  Cluster cluster(3);
  DistributeOptions options = Ordered(cluster, ShardingPolicy::kData);
  options.max_outstanding_requests = 2;
  absl::StatusOr<Iterator> it = Dataset::Range(100).Distribute(options).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  const absl::Status status = it->Next().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("3 partitions"));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("not 2"));
}

}  // namespace
}  // namespace penstock
