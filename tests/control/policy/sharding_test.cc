// SPDX-License-Identifier: Apache-2.0
// Modes in which partitions are shards, and the list of workers.
#include "control/policy/sharding.h"

#include <set>

#include "control/policy/placing.h"
#include "control/policy/splits.h"
#include "control/policy/worker_list.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

namespace p = ::penstock::protocol;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// --- Modes -------------------------------------------------------------------------

DatasetSummary OfFiles(int64_t files) {
  return {.plan = {{.node = "ListFiles#0", .count = files, .by_file = true}}};
}
DatasetSummary OfNumbers() {
  return {.plan = {{.node = "Range#0", .count = 100}}};
}

TEST(ResolveMode, FileNeedsFilesForEveryWorker) {
  EXPECT_EQ(*ResolveMode(OfFiles(3), ShardingPolicy::kFile, 3), ShardingPolicy::kFile);
  absl::Status status = ResolveMode(OfFiles(3), ShardingPolicy::kFile, 4).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("only 3 file(s)"));
  status = ResolveMode(OfNumbers(), ShardingPolicy::kFile, 2).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Range#0"));
  EXPECT_EQ(ResolveMode({}, ShardingPolicy::kFile, 2).status().code(), absl::StatusCode::kNotFound);
}

TEST(ResolveMode, EveryInputMustBeOfFiles) {
  DatasetSummary zipped = OfFiles(8);
  zipped.plan.push_back(OfNumbers().plan[0]);
  EXPECT_EQ(ResolveMode(zipped, ShardingPolicy::kFile, 2).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ResolveMode, FileOrDataTakesDataWhereFileCannotBe) {
  const ShardingPolicy either = ShardingPolicy::kFileOrData;
  EXPECT_EQ(*ResolveMode(OfFiles(3), either, 3), ShardingPolicy::kFile);
  EXPECT_EQ(*ResolveMode(OfFiles(3), either, 4), ShardingPolicy::kData);
  EXPECT_EQ(*ResolveMode(OfNumbers(), either, 4), ShardingPolicy::kData);
}

TEST(ResolveMode, NoFilesAtAllAreDividedAsTheyAre) {
  EXPECT_EQ(*ResolveMode(OfFiles(0), ShardingPolicy::kFile, 4), ShardingPolicy::kFile);
}

TEST(ResolveMode, OneWorkerReadsEverything) {
  EXPECT_TRUE(ResolveMode(OfNumbers(), ShardingPolicy::kFile, 1).ok());
}

// --- A list of workers ---------------------------------------------------------------

int64_t PlaceOf(const std::vector<std::string>& list, const std::string& address,
                const std::set<int64_t>& taken = {}) {
  return PlaceInList(list, address, taken).value_or(-1);
}

TEST(WorkerList, APlaceIsThatOfTheVeryAddressOrOfTheHost) {
  const std::vector<std::string> list = {
      "a:10", "b:%port%", "c", "d:%port_worker%", "[::1]:5", "[::2]", "dns://e:%port%", "f:http"};
  EXPECT_EQ(PlaceOf(list, "a:10"), 0);
  EXPECT_EQ(PlaceOf(list, "a:11"), -1);
  EXPECT_EQ(PlaceOf(list, "b:4711"), 1);
  EXPECT_EQ(PlaceOf(list, "c:4711"), 2);
  EXPECT_EQ(PlaceOf(list, "c"), 2);
  EXPECT_EQ(PlaceOf(list, "d:1"), 3);
  EXPECT_EQ(PlaceOf(list, "[::1]:5"), 4);
  EXPECT_EQ(PlaceOf(list, "[::1]:6"), -1);
  EXPECT_EQ(PlaceOf(list, "[::2]:6"), 5);
  EXPECT_EQ(PlaceOf(list, "dns://e:9"), 6);
  EXPECT_EQ(PlaceOf(list, "e:9"), -1);
  EXPECT_EQ(PlaceOf(list, "f:http"), 7);
}

TEST(WorkerList, AHostMayStandThereSeveralTimes) {
  const std::vector<std::string> list = {"a:%port%", "a:7", "a"};
  EXPECT_EQ(PlaceOf(list, "a:1"), 0);
  EXPECT_EQ(PlaceOf(list, "a:7", {0}), 1);
  EXPECT_EQ(PlaceOf(list, "a:2", {0}), 2);
  EXPECT_EQ(PlaceOf(list, "a:3", {0, 2}), -1);
}

TEST(WorkerList, AWorkerOutsideOfItGetsTheList) {
  const absl::Status status = PlaceInList({"a", "b:%port%"}, "c:1", {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("worker c:1. Configured workers list: [a, b:%port%]"));
}

TEST(WorkerList, AnEntryHasAHost) {
  EXPECT_TRUE(CheckWorkerAddresses({"a", "b:1", "[::1]:%port%"}).ok());
  EXPECT_EQ(CheckWorkerAddresses({"a", ""}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckWorkerAddresses({":%port%"}).code(), absl::StatusCode::kInvalidArgument);
}

// --- Shards --------------------------------------------------------------------------

class Sharded : public ::testing::Test {
 protected:
  static constexpr IterationId kIteration{1};

  void Make(ShardingPolicy mode, Division division, int64_t splits = 0, bool shuffled = false,
            TargetWorkers target = TargetWorkers::kAuto) {
    auto dataset = std::make_shared<const DatasetRecord>(DatasetRecord{
        "1000", "", {.plan = {{.count = splits, .shuffled = shuffled, .by_file = true}}}});
    state_.Apply(DatasetRegistered{dataset});
    state_.Apply(JobCreated{{.id = JobId(1),
                             .name = "job",
                             .dataset = dataset,
                             .terms = {.mode = mode, .target_workers = target}}});
    state_.Apply(IterationCreated{kIteration, JobId(1), 0, std::move(division)});
    for (size_t p = 0; p < iteration().division.shards.size(); ++p) {
      state_.Apply(IterationAltered{kIteration, p::PartitionOpened{PartitionId(p + 1)}});
    }
  }
  void AddWorker(uint64_t id, int64_t place) {
    state_.Apply(WorkerRegistered{{.id = WorkerId(id), .place = place}});
    usable_.push_back(UsableOf(state_.workers.at(WorkerId(id))));
  }
  void Place(uint64_t partition, uint64_t worker) {
    state_.Apply(IterationAltered{
        kIteration, p::PartitionAssigned{PartitionId(partition), Placement(1), WorkerId(worker)}});
  }
  const IterationState& iteration() const { return state_.iterations.at(kIteration); }
  WorkerId Choose(uint64_t partition) {
    return ChooseWorker(
        state_, iteration(),
        PartitionCounts(state_, iteration(), p::MakeIterationContext(iteration().record)),
        PartitionId(partition), usable_);
  }
  // Returns all splits of a partition; asks for three at a time.
  std::vector<int64_t> SplitsOf(uint64_t partition, int64_t repetition = 0) {
    std::vector<int64_t> all;
    for (bool more = true; more;) {
      const SplitRequest request{{kIteration, PartitionId(partition), Placement(1)},
                                 0,
                                 repetition,
                                 static_cast<int64_t>(all.size()),
                                 3};
      absl::StatusOr<SplitDecision> decision =
          DecideSplits(state_.jobs.at(JobId(1)), iteration(), request);
      EXPECT_TRUE(decision.ok()) << decision.status();
      if (!decision.ok()) return all;
      if (decision->given) state_.Apply(*decision->given);
      all.insert(all.end(), decision->answer.numbers.begin(), decision->answer.numbers.end());
      more = !decision->answer.no_more;
    }
    return all;
  }

  State state_;
  std::vector<UsableWorker> usable_;
};

TEST_F(Sharded, FileGivesEachPartitionTheSplitsOfItsShard) {
  Make(ShardingPolicy::kFile, {ShardingPolicy::kFile, 3, {0, 1, 2}}, 8);
  EXPECT_THAT(SplitsOf(2), ElementsAre(1, 4, 7));
  EXPECT_THAT(SplitsOf(1), ElementsAre(0, 3, 6));
  EXPECT_THAT(SplitsOf(3), ElementsAre(2, 5));
}

TEST_F(Sharded, ShuffledFilesStayInTheirShard) {
  Make(ShardingPolicy::kFile, {ShardingPolicy::kFile, 2, {0, 1}}, 40, /*shuffled=*/true);
  const std::vector<int64_t> first = SplitsOf(1), again = SplitsOf(1, 1);
  EXPECT_NE(first, again);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  std::set<int64_t> even;
  for (int64_t split = 0; split < 40; split += 2) even.insert(split);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()), even);
  EXPECT_EQ(std::set<int64_t>(again.begin(), again.end()), even);
}

TEST_F(Sharded, AShardWithoutSplitsEndsAtOnce) {
  Make(ShardingPolicy::kFile, {ShardingPolicy::kFile, 2, {0, 1}}, 0);
  EXPECT_THAT(SplitsOf(2), ElementsAre());
}

TEST_F(Sharded, AllShardsAreOpenedAndNoMore) {
  Make(ShardingPolicy::kData, {ShardingPolicy::kData, 3, {0, 1, 2}});
  for (uint64_t worker = 1; worker <= 5; ++worker) AddWorker(worker, -1);
  EXPECT_EQ(PartitionsToOpen(state_, iteration(), CapacityOf(usable_)), 0);
  EXPECT_FALSE(Fits(state_, IterationAltered{kIteration, p::PartitionOpened{PartitionId(4)}}).ok());
}

TEST_F(Sharded, AShardGoesToTheWorkerOfItsPlaceElseToAnother) {
  Make(ShardingPolicy::kData, {ShardingPolicy::kData, 2, {0, 1}});
  AddWorker(1, 1);
  EXPECT_EQ(Choose(2), WorkerId(1));
  EXPECT_EQ(Choose(1), WorkerId(1));
  AddWorker(2, 0);
  EXPECT_EQ(Choose(1), WorkerId(2));
}

TEST_F(Sharded, UnderLocalAShardWaitsForItsWorker) {
  Make(ShardingPolicy::kData, {ShardingPolicy::kData, 2, {0, 1}}, 0, false, TargetWorkers::kLocal);
  AddWorker(1, 1);
  EXPECT_EQ(Choose(1), WorkerId());
  EXPECT_EQ(Choose(2), WorkerId(1));
}

TEST_F(Sharded, AWorkerThatComesGetsTheShardOfItsPlaceBack) {
  Make(ShardingPolicy::kData, {ShardingPolicy::kData, 2, {0, 1}});
  AddWorker(1, 1);
  Place(1, 1);
  Place(2, 1);
  p::IterationContext context = p::MakeIterationContext(iteration().record);
  EXPECT_TRUE(PartitionsToRelieve(state_, iteration(), context, usable_).empty());
  AddWorker(2, 0);
  EXPECT_THAT(PartitionsToRelieve(state_, iteration(), context, usable_),
              ElementsAre(PartitionId(1)));
  context.partitions[0].ended = 5;
  EXPECT_TRUE(PartitionsToRelieve(state_, iteration(), context, usable_).empty());
}

TEST(Reading, FollowsTheTargetAndTheTags) {
  const std::vector<std::string> colocated = {"gpu", "Colocated"}, other = {"gpu"};
  EXPECT_TRUE(Reads(TargetWorkers::kAuto, false, other));
  EXPECT_FALSE(Reads(TargetWorkers::kAuto, false, colocated));
  EXPECT_TRUE(Reads(TargetWorkers::kAuto, true, colocated));
  EXPECT_TRUE(Reads(TargetWorkers::kAny, false, colocated));
  EXPECT_TRUE(Reads(TargetWorkers::kLocal, true, other));
  EXPECT_FALSE(Reads(TargetWorkers::kLocal, false, other));
}

}  // namespace
}  // namespace penstock::control
