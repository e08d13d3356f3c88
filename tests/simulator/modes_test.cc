// SPDX-License-Identifier: Apache-2.0
// The checks of rounds, orders, shards, caches and passes, on histories that are right or wrong.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/simulator/check/cache.h"
#include "tools/simulator/check/jobs.h"
#include "tools/simulator/check/order.h"
#include "tools/simulator/check/rounds.h"
#include "tools/simulator/check/shards.h"

namespace penstock::simulator {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

int64_t Itself(int64_t index) {
  return index;
}

Got Of(uint64_t partition, Index index, int64_t value) {
  Got got;
  got.key = {IterationId(1), PartitionId(partition), index};
  got.value = value;
  got.placement = Placement(1);
  got.record = 1;
  return got;
}

// An element of a round, or of a step of an order.
Got Of(int64_t round, int64_t consumer, uint64_t partition, Index index, int64_t value) {
  Got got = Of(partition, index, value);
  got.round = round;
  got.consumer = consumer;
  return got;
}

History HistoryOf(const std::string& name, std::vector<Got> got) {
  History history;
  history.name = name;
  history.got = std::move(got);
  history.ended = absl::Seconds(9);
  return history;
}

// --- Rounds ------------------------------------------------------------------------

// Partition 1 has elements 0 to 3 and one more, 4, with which 5 of partition 2 makes the last
// round.
Histories TwoConsumers() {
  return {
      HistoryOf("a", {Of(0, 0, 1, 0, 0), Of(1, 0, 1, 2, 2), Of(2, 0, 1, 4, 4)}),
      HistoryOf("b", {Of(0, 1, 1, 1, 1), Of(1, 1, 1, 3, 3), Of(2, 1, 2, 0, 5)}),
  };
}

std::vector<std::string> RoundsIn(const Histories& histories, int64_t elements = 6) {
  return CheckRounds(histories, 2, {elements, Itself}).violations;
}

TEST(CheckRounds, AcceptsWholeRoundsAndRemainders) {
  EXPECT_THAT(RoundsIn(TwoConsumers()), IsEmpty());
  EXPECT_EQ(CheckRounds(TwoConsumers(), 2, {6, Itself}).elements, 6);
}

TEST(CheckRounds, LeavesOutAJobThatWasBegunAgain) {
  Histories histories = TwoConsumers();
  histories.push_back(HistoryOf("c", {Of(0, 0, 1, 0, 0)}));
  histories.back().ended.reset();
  EXPECT_THAT(RoundsIn(histories), IsEmpty());
}

TEST(CheckRounds, NamesARoundThatIsSkippedOrComesTwice) {
  Histories skipped = TwoConsumers();
  skipped[0].got.erase(skipped[0].got.begin() + 1);
  EXPECT_THAT(RoundsIn(skipped), Contains("wrong round: a got round 2 where round 1 was next"));
  Histories twice = TwoConsumers();
  twice[1].got.insert(twice[1].got.begin(), twice[1].got.front());
  EXPECT_THAT(RoundsIn(twice), Contains("wrong round: b got round 0 where round 1 was next"));
}

TEST(CheckRounds, NamesTheElementOfAnotherConsumer) {
  Histories histories = TwoConsumers();
  histories[0].got[1].consumer = 1;
  EXPECT_THAT(RoundsIn(histories),
              Contains(AllOf(HasSubstr("wrong consumer: a"), HasSubstr("in round 1"))));
}

TEST(CheckRounds, NamesARoundThatIsNotWhole) {
  Histories histories = TwoConsumers();
  std::swap(histories[0].got[0].key, histories[0].got[1].key);
  std::swap(histories[1].got[0].key, histories[1].got[2].key);
  EXPECT_THAT(RoundsIn(histories),
              ElementsAre(HasSubstr("but partition 1 has 5 elements there, which make a row")));
  histories = TwoConsumers();
  std::swap(histories[1].got[0].key, histories[1].got[2].key);
  EXPECT_THAT(RoundsIn(histories), Contains(HasSubstr("mixed round: the elements of round 0")));
}

TEST(CheckRounds, NamesDifferentEndsAndMissingConsumers) {
  Histories histories = TwoConsumers();
  histories[1].got.pop_back();
  EXPECT_THAT(RoundsIn(histories), Contains("different ends: a got 3 rounds, b 2"));
  histories.pop_back();
  EXPECT_THAT(RoundsIn(histories), Contains(HasSubstr("nobody read to the end as consumer 1")));
}

TEST(CheckRounds, NamesLostDoubledAndForeignElements) {
  EXPECT_THAT(RoundsIn(TwoConsumers(), 7), ElementsAre("lost: the element 6 is in 0 rounds"));
  EXPECT_THAT(RoundsIn(TwoConsumers(), 5),
              ElementsAre("wrong: 5 is not an element of the dataset"));
  Histories histories = TwoConsumers();
  histories[1].got[2] = histories[0].got[2];
  histories[1].got[2].consumer = 1;
  EXPECT_THAT(RoundsIn(histories, 5), Contains(HasSubstr("doubled: b got partition 1, index 4")));
}

TEST(CheckRounds, AdmitsCopiesOnlyInTheLastRound) {
  Histories histories = TwoConsumers();
  histories[1].got[2] = Of(2, 1, 1, 5, 4);
  histories[1].got[2].pad = true;
  EXPECT_THAT(RoundsIn(histories, 5), IsEmpty());
  histories[1].got[0].pad = true;
  EXPECT_THAT(RoundsIn(histories, 5), Contains(HasSubstr("wrong copies: round 0 of 3 has 1")));
}

// --- Order -------------------------------------------------------------------------

// Partition 1 has 3 elements, partition 2 has one: positions 0, 1, 2 and 4.
const std::vector<std::optional<Index>> kEnds = {3, 1};

TEST(CheckOrder, AcceptsTheOrderAndPiecesOfIt) {
  EXPECT_THAT(
      CheckOrder({HistoryOf("a", {Of(1, 0, 0), Of(2, 0, 1), Of(1, 1, 2), Of(1, 2, 3)})}, kEnds, 1),
      IsEmpty());
  EXPECT_THAT(
      CheckOrder({HistoryOf("a", {Of(1, 0, 0)}), HistoryOf("b", {Of(1, 1, 2), Of(1, 2, 3)})}, kEnds,
                 1),
      IsEmpty());
}

TEST(CheckOrder, NamesAGapAndAStepBack) {
  EXPECT_THAT(CheckOrder({HistoryOf("a", {Of(1, 0, 0), Of(1, 1, 2)})}, kEnds, 1),
              ElementsAre("wrong order: a got partition 1, index 1, which has position 2, after "
                          "position 0, where position 1 is next"));
  EXPECT_THAT(CheckOrder({HistoryOf("a", {Of(2, 0, 1), Of(1, 0, 0)})}, kEnds, 1),
              ElementsAre(HasSubstr("which has position 0, after position 1")));
}

TEST(CheckOrder, ChecksTheStepsOfConsumers) {
  const History first = HistoryOf("a", {Of(0, 0, 1, 0, 0), Of(1, 0, 1, 1, 2), Of(2, 0, 1, 2, 3)});
  const History second = HistoryOf("b", {Of(0, 1, 2, 0, 1)});
  EXPECT_THAT(CheckOrder({first, second}, kEnds, 2), IsEmpty());
  History late = first;
  late.got[2].round = 3;
  EXPECT_THAT(CheckOrder({late, second}, kEnds, 2),
              ElementsAre(HasSubstr("in step 3 as consumer 0, but its place is step 2")));
}

// --- Shards and caches -------------------------------------------------------------

TEST(CheckShards, AcceptsEveryNthElementInOrder) {
  EXPECT_THAT(CheckShards({HistoryOf("a", {Of(1, 0, 0), Of(2, 0, 1), Of(2, 1, 3), Of(1, 1, 2)})}, 2,
                          {4, Itself}, Itself),
              IsEmpty());
}

// Of five elements in three files, the second file has the elements 1 and 2.
TEST(CheckShards, AcceptsEveryNthFileInOrder) {
  DatasetPlan plan;
  plan.elements = 5;
  plan.files = 3;
  const auto file_of = [&](int64_t element) { return plan.FileOf(element); };
  const History history =
      HistoryOf("a", {Of(1, 0, 0), Of(2, 0, 1), Of(2, 1, 2), Of(1, 1, 3), Of(1, 2, 4)});
  EXPECT_THAT(CheckShards({history}, 2, {5, Itself}, file_of), IsEmpty());
  EXPECT_THAT(CheckShards({history}, 2, {5, Itself}, Itself),
              ElementsAre(HasSubstr("index 1 is element 2 of the dataset")));
}

TEST(CheckShards, NamesAnElementOfAnotherShard) {
  EXPECT_THAT(CheckShards({HistoryOf("a", {Of(1, 0, 0), Of(1, 1, 3)})}, 2, {4, Itself}, Itself),
              ElementsAre("wrong shard: partition 1 of 2, index 1 is element 3 of the dataset, but "
                          "the partition has shard 0"));
}

std::vector<std::string> CacheOf(const std::vector<Got>& got, bool calm) {
  return CheckCache({HistoryOf("a", got)}, {3, Itself}, calm);
}

TEST(CheckCache, AdmitsMissedElements) {
  EXPECT_THAT(CacheOf({Of(1, 1, 1), Of(2, 0, 0), Of(1, 4, 1), Of(2, 3, 0)}, true), IsEmpty());
}

TEST(CheckCache, NamesElementsThatComeTwice) {
  EXPECT_THAT(CacheOf({Of(1, 1, 1), Of(1, 1, 1)}, false),
              ElementsAre("doubled: a got partition 1, index 1 twice under placement 1"));
  Got moved = Of(1, 1, 1);
  moved.placement = Placement(2);
  EXPECT_THAT(CacheOf({Of(1, 1, 1), moved}, false), IsEmpty());
}

TEST(CheckCache, NamesWrongValuesAndWithoutFaultsAWrongOrder) {
  EXPECT_THAT(CacheOf({Of(1, 4, 2)}, true),
              ElementsAre(HasSubstr("with the value 2 instead of 1")));
  EXPECT_THAT(CacheOf({Of(1, 2, 2), Of(1, 1, 1)}, false), IsEmpty());
  EXPECT_THAT(CacheOf({Of(1, 2, 2), Of(1, 1, 1)}, true),
              ElementsAre(HasSubstr("wrong order: a got partition 1, index 1 after index 2")));
}

// --- Jobs --------------------------------------------------------------------------

CommittedIteration Pass(int64_t repetition, std::vector<std::optional<Index>> ends) {
  CommittedIteration pass;
  pass.job = JobId(1);
  pass.repetition = repetition;
  pass.ends = std::move(ends);
  return pass;
}

Got InPass(uint64_t iteration, Index index, int64_t value) {
  Got got = Of(1, index, value);
  got.key.iteration = IterationId(iteration);
  return got;
}

using Passes = std::map<IterationId, CommittedIteration>;

// Each history is of one reader of each pass. It has committed all that its trainer got, or, if
// this one is gone, its last state.
Findings JobsIn(const JobPlan& job, Histories histories, Passes passes) {
  uint64_t number = 0;
  for (History& history : histories) {
    history.client = ClientId(++number);
    const size_t size = history.gone.has_value() ? history.committed : history.got.size();
    for (auto& [id, pass] : passes) {
      protocol::ReceivedSets committed;
      for (size_t i = 0; i < size; ++i) {
        const ElementKey& key = history.got[i].key;
        if (key.iteration == id)
          committed.Add(key.partition, IndexSet::Of(key.index, key.index + 1));
      }
      pass.readers.push_back({*history.client, committed});
      pass.sessions[*history.client].began = {1};
    }
  }
  const std::vector<JobPlan> jobs = {job};
  const Shadow shadow = Shadow::Of(std::move(passes));
  return CheckJobs({jobs, histories, shadow, Itself});
}

TEST(CheckJobs, ChecksEachPass) {
  JobPlan job;
  job.elements = 2;
  job.repetitions = 2;
  const Passes passes = {{IterationId(1), Pass(0, {2})}, {IterationId(2), Pass(1, {2})}};
  const History whole =
      HistoryOf("a", {InPass(1, 0, 0), InPass(1, 1, 1), InPass(2, 0, 0), InPass(2, 1, 1)});
  EXPECT_THAT(JobsIn(job, {whole}, passes).violations, IsEmpty());
  EXPECT_EQ(JobsIn(job, {whole}, passes).elements, 4);
  History lost = whole;
  lost.got.pop_back();
  EXPECT_THAT(JobsIn(job, {lost}, passes).violations,
              ElementsAre(AllOf(HasSubstr("lost: "), HasSubstr("(job train, pass 1)"))));
  lost.got.resize(2);
  EXPECT_THAT(JobsIn(job, {lost}, passes).violations,
              ElementsAre("wrong passes: job train was read in 1 passes of 2"));
}

TEST(CheckJobs, ComparesStatesWithEachPass) {
  JobPlan job;
  job.elements = 2;
  job.repetitions = 2;
  Passes passes = {{IterationId(1), Pass(0, {2})}, {IterationId(2), Pass(1, {2})}};
  for (auto& [id, pass] : passes) {
    pass.commits_states = true;
    pass.sessions[ClientId(1)].lost = {2};
  }
  History dead =
      HistoryOf("a", {InPass(1, 0, 0), InPass(1, 1, 1), InPass(2, 0, 0), InPass(2, 1, 1)});
  dead.ended.reset();
  dead.gone = absl::Seconds(2);
  dead.states = {3};
  dead.committed = 3;
  History next = HistoryOf("b", {InPass(2, 1, 1)});
  next.got[0].when = absl::Seconds(3);
  next.got[0].record = 3;
  EXPECT_THAT(JobsIn(job, {dead, next}, passes).violations, IsEmpty());
  dead.states = {2, 4};
  EXPECT_THAT(JobsIn(job, {dead, next}, passes).violations,
              ElementsAre(AllOf(HasSubstr("not a state: "), HasSubstr("(job train, pass 1)"))));
}

TEST(CheckJobs, NamesAPassThatWasBegunTwice) {
  JobPlan job;
  job.elements = 1;
  const Passes passes = {{IterationId(1), Pass(0, {1})}, {IterationId(2), Pass(0, {1})}};
  const Histories histories = {HistoryOf("a", {InPass(1, 0, 0)}),
                               HistoryOf("b", {InPass(2, 0, 0)})};
  EXPECT_THAT(JobsIn(job, histories, passes).violations, Contains(HasSubstr("doubled pass: ")));
  job.named = false;  // each trainer has a job of its own
  EXPECT_THAT(JobsIn(job, histories, passes).violations, IsEmpty());
}

TEST(CheckJobs, LeavesOutAnUnnamedJobWhoseTrainerIsGone) {
  JobPlan job;
  job.elements = 2;
  job.named = false;
  const Passes passes = {{IterationId(1), Pass(0, {std::nullopt})}, {IterationId(2), Pass(0, {2})}};
  History gone = HistoryOf("a", {InPass(1, 0, 0)});
  gone.ended.reset();
  gone.gone = absl::Seconds(1);
  const History read = HistoryOf("b", {InPass(2, 0, 0), InPass(2, 1, 1)});
  EXPECT_THAT(JobsIn(job, {gone, read}, passes).violations, IsEmpty());
}

TEST(CheckJobs, EachPartitionHasTheWholeDatasetInModeOff) {
  JobPlan job;
  job.elements = 2;
  job.mode = ShardingPolicy::kOff;
  const Passes passes = {{IterationId(1), Pass(0, {2, 2})}};
  History history = HistoryOf("a", {Of(1, 0, 0), Of(1, 1, 1), Of(2, 0, 0), Of(2, 1, 1)});
  EXPECT_THAT(JobsIn(job, {history}, passes).violations, IsEmpty());
  history.got.pop_back();
  EXPECT_THAT(JobsIn(job, {history}, passes).violations, ElementsAre(HasSubstr("lost: ")));
}

}  // namespace
}  // namespace penstock::simulator
