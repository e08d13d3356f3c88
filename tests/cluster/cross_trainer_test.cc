// SPDX-License-Identifier: Apache-2.0
// Trainers of one job that read the same elements through the workers' windows.
#include <atomic>
#include <string>

#include "penstock/expr.h"
#include "penstock/register.h"
#include "tests/cluster/cluster.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kEndless = int64_t{1} << 40;

std::atomic<int64_t>& Prepared() {
  static std::atomic<int64_t> prepared{0};
  return prepared;
}
absl::Status CountPrepared(CallContext& call) {
  ++Prepared();
  absl::StatusOr<absl::Span<int64_t>> out = call.OutputAs<int64_t>(0, {});
  if (!out.ok()) return out.status();
  (*out)[0] = call.inputs()[0].scalar<int64_t>();
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("count_prepared", 1, Scalar(kInt64), CountPrepared);

Dataset Numbers() {
  return Dataset::Range(kEndless)  // one call at a time: a Map that reads ahead prepares more
      .Map([](Expr x) { return Call("count_prepared", x); }, {.num_parallel_calls = 1})
      .Repeat();
}

DistributeOptions As(const Cluster& cluster, const std::string& trainer) {
  DistributeOptions options = cluster.Options(ShardingPolicy::kOff, "sweep");
  options.max_outstanding_requests = 4;
  options.cross_trainer_cache = CrossTrainerCache{trainer};
  return options;
}

Iterator Read(const Dataset& dataset, const DistributeOptions& options) {
  absl::StatusOr<Iterator> it = dataset.Distribute(options).MakeIterator();
  EXPECT_TRUE(it.ok()) << it.status();
  return *std::move(it);
}

std::vector<int64_t> Take(Iterator& it, int count) {
  std::vector<int64_t> values;
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<std::optional<Element>> element = it.Next();
    EXPECT_TRUE(element.ok()) << element.status();
    if (!element.ok() || !element->has_value()) break;
    values.push_back((*element)->tensor(0).scalar<int64_t>());
  }
  return values;
}

std::vector<int64_t> From(int64_t first, int64_t count) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(first + i);
  return values;
}

class CrossTrainer : public testing::TestWithParam<const char*> {};

TEST_P(CrossTrainer, EachReadsAllAndItIsPreparedOnce) {
  Cluster cluster(1);
  const int64_t before = Prepared();
  std::vector<Iterator> trainers;
  for (const char* id : {"a", "b", "c"}) {
    DistributeOptions options = As(cluster, id);
    options.data_transfer_protocol = GetParam();
    trainers.push_back(Read(Numbers(), options));
    EXPECT_EQ(Take(trainers.back(), 200), From(0, 200)) << id;
  }
  // What the first may have asked for ahead, and one made to be sent.
  EXPECT_LE(Prepared() - before, 200 + 4 + 1);
}

INSTANTIATE_TEST_SUITE_P(Over, CrossTrainer, testing::Values("local", "shm", "tcp", "grpc"));

TEST(CrossTrainerJobs, ReadersOfOneTrainerHaveEachElementOnce) {
  Cluster cluster(1);
  Iterator a = Read(Numbers(), As(cluster, "same"));
  Iterator b = Read(Numbers(), As(cluster, "same"));
  std::vector<int64_t> values;
  for (int i = 0; i < 100; ++i) {
    for (Iterator* it : {&a, &b}) {
      for (int64_t value : Take(*it, 1)) values.push_back(value);
    }
  }
  values = Sorted(values);
  EXPECT_EQ(std::unique(values.begin(), values.end()), values.end());
  EXPECT_LT(values.back(), 200 + 2 * 4);  // shared, not read twice
}

TEST(CrossTrainerJobs, ASlowOneSkipsAndTheFastOneIsNotHeldUp) {
  Cluster cluster(0);
  cluster.AddWorker({.cross_trainer_cache_size_bytes = 16 << 10});
  Iterator slow = Read(Numbers(), As(cluster, "slow")), fast = Read(Numbers(), As(cluster, "fast"));
  EXPECT_EQ(Take(slow, 1), From(0, 1));
  const std::vector<int64_t> all = Take(fast, 2000);
  EXPECT_EQ(all, From(all[0], 2000));
  const std::vector<int64_t> some = Take(slow, 50);
  EXPECT_TRUE(std::is_sorted(some.begin(), some.end()));
  EXPECT_GT(some.back(), 1000);
}

TEST(CrossTrainerJobs, OneThatLeavesMovesNothing) {
  Cluster cluster(1);
  Iterator stays = Read(Numbers(), As(cluster, "stays"));
  {
    Iterator leaves = Read(Numbers(), As(cluster, "leaves"));
    EXPECT_EQ(Take(leaves, 10), From(0, 10));
    EXPECT_EQ(Take(stays, 100), From(0, 100));
  }
  EXPECT_EQ(Take(stays, 100), From(100, 100));
}

TEST(CrossTrainerJobs, AWorkersDeathEndsNobodysReading) {
  Cluster cluster(2);
  Iterator a = Read(Numbers(), As(cluster, "a")), b = Read(Numbers(), As(cluster, "b"));
  EXPECT_EQ(Take(a, 100).size(), 100u);
  EXPECT_EQ(Take(b, 10).size(), 10u);
  cluster.RemoveWorker(0);
  EXPECT_EQ(Take(a, 500).size(), 500u);
  EXPECT_EQ(Take(b, 500).size(), 500u);
}

absl::Status FirstError(const Dataset& dataset, const DistributeOptions& options) {
  Iterator it = Read(dataset, options);
  while (true) {
    absl::StatusOr<std::optional<Element>> element = it.Next();
    if (!element.ok()) return element.status();
    if (!element->has_value()) return absl::OkStatus();
  }
}

TEST(CrossTrainerJobs, AreRefusedForADatasetThatEnds) {
  Cluster cluster(1);
  const absl::Status known = Dataset::Range(10).Distribute(As(cluster, "a")).status();
  EXPECT_TRUE(absl::IsInvalidArgument(known)) << known;
  EXPECT_THAT(std::string(known.message()), HasSubstr("cardinality 10"));
  const Dataset unknown = Dataset::Range(10).Filter([](Expr x) { return x < 5; });
  const absl::Status found = FirstError(unknown, As(cluster, "a"));
  EXPECT_TRUE(absl::IsInvalidArgument(found)) << found;
  EXPECT_THAT(std::string(found.message()), HasSubstr("requires an infinite dataset"));
}

TEST(CrossTrainerJobs, WithAndWithoutACacheAreTwo) {
  Cluster cluster(1);
  Iterator with = Read(Numbers(), As(cluster, "a"));
  EXPECT_EQ(Take(with, 1).size(), 1u);
  DistributeOptions without = As(cluster, "");
  without.cross_trainer_cache.reset();
  const absl::Status refused = FirstError(Numbers(), without);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("cross-trainer cache"));
}

}  // namespace
}  // namespace penstock
