// SPDX-License-Identifier: Apache-2.0
#include "control/state/state.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/journal/changes_proto.h"
#include "control/protocol/scoped_name.h"
#include "control/state/past_iteration.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

namespace p = ::penstock::protocol;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const IterationId kIteration(1);
const PartitionId kOne(1);

State WithAnIteration(AckMode ack_mode = AckMode::kOnDelivery) {
  State state;
  auto dataset = std::make_shared<const DatasetRecord>(
      DatasetRecord{"1000", "definition", {.fingerprint = 5, .plan = {{.count = 100}}}});
  state.Apply(DatasetRegistered{dataset});
  state.Apply(JobCreated{
      {.id = JobId(1), .name = "job", .dataset = dataset, .terms = {.ack_mode = ack_mode}}});
  state.Apply(IterationCreated{kIteration, JobId(1), 0});
  state.Apply(IterationAltered{kIteration, p::PartitionOpened{kOne}});
  return state;
}

SplitsGiven Give(int64_t first_ordinal, std::vector<int64_t> numbers, bool no_more = false) {
  return {{kIteration, kOne}, {0, 0, first_ordinal, std::move(numbers), no_more}};
}

const SplitRun& Given(const State& state) {
  return state.iterations.at(kIteration).splits[0].given.at({0, 0});
}

TEST(State, AutomaticIdsSkipThoseOfUsers) {
  State state;
  auto taken = [](const char* id) {
    return DatasetRegistered{std::make_shared<const DatasetRecord>(DatasetRecord{id, "", {}})};
  };
  EXPECT_EQ(state.next_dataset, 1000u);
  state.Apply(taken("1001"));
  EXPECT_EQ(state.next_dataset, 1000u);
  state.Apply(taken("1000"));
  EXPECT_EQ(state.next_dataset, 1002u);
}

TEST(State, AWorkerIdKeepsItsOwnerForALimitedNumberOfLaterWorkers) {
  State state;
  const auto come_and_go = [&](uint64_t id, const std::string& owner) {
    state.Apply(WorkerRegistered{{.id = WorkerId(id), .owner = owner}});
    state.Apply(WorkerGone{WorkerId(id)});
  };
  for (uint64_t id = 1; id <= kFormerWorkersKept; ++id) come_and_go(id, "w");
  come_and_go(1, "w");  // again, as the latest
  come_and_go(kFormerWorkersKept + 1, "");
  EXPECT_EQ(state.former_workers.size(), kFormerWorkersKept);
  EXPECT_EQ(state.OwnerOf(WorkerId(2)), "w");
  come_and_go(kFormerWorkersKept + 2, "w");
  EXPECT_EQ(state.OwnerOf(WorkerId(2)), "");
  EXPECT_EQ(state.OwnerOf(WorkerId(1)), "w");
  state.Apply(WorkerRegistered{{.id = WorkerId(1), .owner = "w"}});
  EXPECT_EQ(state.OwnerOf(WorkerId(1)), "w");
}

TEST(State, SplitsStayWithTheirPartitionInTheOrderTheyWereGiven) {
  State state = WithAnIteration();
  state.Apply(Give(0, {7, 3}));
  state.Apply(Give(2, {9}));
  EXPECT_THAT(Given(state).numbers, ElementsAre(7, 3, 9));
  EXPECT_EQ(state.iterations.at(kIteration).handed_out.at({0, 0}), 3);
}

TEST(State, SplitsThatLeaveAGapOrFollowTheLastDoNotFit) {
  State state = WithAnIteration();
  state.Apply(Give(0, {7}));
  EXPECT_FALSE(Fits(state, Give(2, {1})).ok());
  EXPECT_FALSE(Fits(state, Give(0, {1})).ok());
  state.Apply(Give(1, {}, /*no_more=*/true));
  EXPECT_FALSE(Fits(state, Give(1, {1})).ok());
}

TEST(State, SplitsAreRetiredWithTheBookmarksThatNeededThem) {
  State state = WithAnIteration();
  state.Apply(Give(0, {7, 3, 9, 4}));
  for (int64_t i = 1; i <= 3; ++i) {
    state.Apply(IterationAltered{kIteration, p::BookmarkAdded{kOne, {10 * i, "position"}}});
    state.Apply(BookmarkMarked{{kIteration, kOne}, {10 * i, {{0, 0, i}}}});
  }
  EXPECT_EQ(Given(state).first_ordinal, 0);
  state.Apply(IterationAltered{kIteration, p::BookmarksRetired{kOne, 20}});
  EXPECT_EQ(Given(state).first_ordinal, 2);
  EXPECT_THAT(Given(state).numbers, ElementsAre(9, 4));
  // The next ones continue the sequence.
  state.Apply(Give(4, {5}));
  EXPECT_THAT(Given(state).numbers, ElementsAre(9, 4, 5));
}

// A finished, failed or cancelled iteration is never replayed.
TEST(State, AnIterationThatIsOverKeepsOnlyHowManySplitsItGave) {
  State open = WithAnIteration();
  open.Apply(Give(0, {7, 3}, /*no_more=*/true));
  open.Apply(IterationAltered{kIteration, p::BookmarkAdded{kOne, {1, "position"}}});
  open.Apply(BookmarkMarked{{kIteration, kOne}, {1, {{0, 0, 1}}}});
  const std::vector<std::vector<Change>> ways = {
      {IterationAltered{kIteration, p::IterationClosed{{0}}},
       IterationAltered{kIteration, p::IterationFinished{}}},
      {IterationFailed{kIteration, absl::NotFoundError("file")}},
      {JobCancelled{JobId(1)}}};
  for (const std::vector<Change>& way : ways) {
    State over = open;
    for (const Change& change : way) over.Apply(change);
    EXPECT_EQ(Given(over).first_ordinal, 2);
    EXPECT_TRUE(Given(over).numbers.empty());
    const IterationState& iteration = over.iterations.at(kIteration);
    EXPECT_TRUE(iteration.record.partitions[0].bookmarks.empty());
    EXPECT_TRUE(iteration.splits[0].marks.empty());
  }
}

TEST(State, ManyBookmarksAreThinnedAndTheirMarksWithThem) {
  State state = WithAnIteration();
  for (int64_t i = 1; i <= 100; ++i) {
    state.Apply(IterationAltered{kIteration, p::BookmarkAdded{kOne, {i, "position"}}});
    state.Apply(BookmarkMarked{{kIteration, kOne}, {i, {}}});
  }
  const IterationState& iteration = state.iterations.at(kIteration);
  EXPECT_LE(iteration.record.partitions[0].bookmarks.size(), 16u);
  EXPECT_LE(iteration.splits[0].marks.size(), 17u);
  EXPECT_EQ(iteration.splits[0].marks.back().index, 100);
}

TEST(State, ARemovedJobTakesItsIterationsAndItsNameAlong) {
  State state = WithAnIteration();
  state.Apply(JobRemoved{JobId(1)});
  EXPECT_EQ(state.FindJobByName("job"), nullptr);
  EXPECT_EQ(state.FindIteration(kIteration), nullptr);
  EXPECT_TRUE(state.repetitions.empty());
}

TEST(State, AJobThatTookANameKeepsItWhenTheOldOneIsRemoved) {
  State state = WithAnIteration();
  JobRecord next = state.jobs.at(JobId(1));
  next.id = JobId(2);
  state.Apply(JobCreated{next});
  state.Apply(JobRemoved{JobId(1)});
  EXPECT_EQ(state.FindJobByName("job")->id, JobId(2));
}

TEST(State, AFinishedIterationKeepsNoHistories) {
  for (const AckMode ack_mode : {AckMode::kOnDelivery, AckMode::kOnCommit}) {
    State state = WithAnIteration(ack_mode);
    const auto alter = [&](p::IterationChange change) {
      state.Apply(IterationAltered{kIteration, std::move(change)});
    };
    const auto reader = [&]() -> const p::ReaderRecord& {
      return state.iterations.at(kIteration).record.readers[0];
    };
    alter(p::ReaderJoined{ClientId(5), Incarnation(1)});
    alter(p::PlacementRaised{kOne, Placement(2)});
    alter(p::PartitionAssigned{kOne, Placement(2), WorkerId(1)});
    alter(p::ReaderCommitted{ClientId(5), kOne, IndexSet::Of(0, 9)});
    alter(p::IterationClosed{{9}});
    alter(p::ReaderEnded{ClientId(5), {IndexSet::Of(0, 9)}});
    EXPECT_EQ(p::Of(reader().committed, kOne).size(), 9);
    alter(p::IterationFinished{});
    EXPECT_TRUE(reader().committed.empty());
    EXPECT_TRUE(reader().final.empty());
    EXPECT_EQ(reader().mark.count, 9);
    const p::IterationRecord& record = state.iterations.at(kIteration).record;
    EXPECT_EQ(record.partitions[0].end, 9);
    EXPECT_EQ(p::CommittedIndices(record, kOne), IndexSet::Of(0, 9));
  }
}

TEST(State, APastIterationComesBackAsItWas) {
  State state = WithAnIteration(AckMode::kOnCommit);
  const auto alter = [&](p::IterationChange change) {
    state.Apply(IterationAltered{kIteration, std::move(change)});
  };
  alter(p::ReaderJoined{ClientId(5), Incarnation(1)});
  EXPECT_FALSE(Fits(state, IterationRetired{kIteration}).ok());
  alter(p::ReaderCommitted{ClientId(5), kOne, IndexSet::Of(0, 9)});
  alter(p::ReaderGone{ClientId(5), p::ReaderStatus::kLeft});
  alter(p::IterationClosed{{9}});
  alter(p::IterationFinished{});
  const IterationState before = state.iterations.at(kIteration);
  state.Apply(IterationRetired{kIteration});
  EXPECT_EQ(state.FindIteration(kIteration), nullptr);
  EXPECT_THAT(state.PastOf(JobId(1)), ElementsAre(0));
  EXPECT_TRUE(state.IsOver(state.jobs.at(JobId(1))));
  EXPECT_FALSE(Fits(state, IterationCreated{IterationId(2), JobId(1), 0}).ok());
  EXPECT_FALSE(Fits(state, IterationRecalled{JobId(1), 1}).ok());
  state.Apply(IterationRecalled{JobId(1), 0});
  EXPECT_EQ(state.iterations.at(kIteration), before);
  EXPECT_EQ(state.FindIteration(JobId(1), 0)->id, kIteration);
  EXPECT_TRUE(state.past.empty());
}

// All consumers may have committed the last round before the iteration is retired.
TEST(State, ThePastOfACoordinatedReadMayBeginAfterItsWholeRounds) {
  IterationState iteration =
      NewIteration({.iteration = kIteration, .job = JobId(1)}, {.num_consumers = 2});
  p::IterationRecord& record = iteration.record;
  record.partitions.emplace_back().end = 3;
  record.rounds.ends = {3};  // one round of a whole row, and one of the remainder
  record.rounds.schedule.first = 2;
  record.closed = record.finished = record.forgotten = true;
  EXPECT_EQ(ToPast(iteration).more->rounds.schedule.first, 2);
}

TEST(State, ARemovedJobTakesItsPastAlong) {
  State state = WithAnIteration();
  state.Apply(IterationAltered{kIteration, p::IterationClosed{{0}}});
  state.Apply(IterationAltered{kIteration, p::IterationFinished{}});
  state.Apply(IterationRetired{kIteration});
  state.Apply(JobRemoved{JobId(1)});
  EXPECT_TRUE(state.past.empty());
}

TEST(State, AJobIsOverWhenItsIterationsAreFinishedOrOneFailed) {
  State state = WithAnIteration();
  const JobRecord& job = state.jobs.at(JobId(1));
  EXPECT_FALSE(state.IsOver(job));
  State finished = state;
  finished.Apply(IterationAltered{kIteration, p::IterationClosed{{0}}});
  EXPECT_FALSE(finished.IsOver(job));
  finished.Apply(IterationAltered{kIteration, p::IterationFinished{}});
  EXPECT_TRUE(finished.IsOver(job));
  state.Apply(IterationFailed{kIteration, absl::NotFoundError("file")});
  EXPECT_TRUE(state.IsOver(job));
}

TEST(State, AnIterationThatFailedIsNotRetired) {
  State state = WithAnIteration();
  state.Apply(IterationAltered{kIteration, p::IterationClosed{{0}}});
  state.Apply(IterationAltered{kIteration, p::IterationFinished{}});
  EXPECT_TRUE(Fits(state, IterationRetired{kIteration}).ok());
  state.Apply(IterationFailed{kIteration, absl::NotFoundError("file")});
  EXPECT_THAT(Fits(state, IterationRetired{kIteration}).message(), HasSubstr("has failed"));
}

TEST(State, OnlyTheLastAnswersAreRemembered) {
  State state;
  for (uint64_t i = 1; i <= kAnswersKept + 1; ++i) {
    state.Apply(Answered{{{Incarnation(1), i}, RegisterDatasetAnswer{"1000"}}});
  }
  EXPECT_EQ(state.FindAnswer({Incarnation(1), 1}), nullptr);
  EXPECT_NE(state.FindAnswer({Incarnation(1), 2}), nullptr);
  EXPECT_EQ(state.FindAnswer({Incarnation(2), 2}), nullptr);
}

TEST(Answers, AreFoundAsIfAllWereComparedWithTheRequest) {
  Answers answers;
  std::deque<AnswerRecord> plain;
  std::mt19937 random(46);
  for (uint64_t i = 0; i < 3 * kAnswersKept; ++i) {
    // A journal may contain several answers to one request.
    const RequestId request{Incarnation(random() % 3 + 1), random() % (2 * kAnswersKept)};
    answers.Add({request, AnsweredJob{JobId(i)}});
    plain.push_back({request, AnsweredJob{JobId(i)}});
    if (plain.size() > kAnswersKept) plain.pop_front();
    if (i % 16 != 0) continue;
    const RequestId asked{Incarnation(random() % 3 + 1), random() % (2 * kAnswersKept)};
    for (const RequestId& of : {request, asked}) {
      const auto found = std::ranges::find(plain, of, &AnswerRecord::request);
      const Answer* answer = answers.Find(of);
      ASSERT_EQ(answer != nullptr, found != plain.end());
      if (answer != nullptr) {
        ASSERT_EQ(*answer, found->answer);
      }
    }
  }
  EXPECT_TRUE(std::ranges::equal(answers, plain));
  EXPECT_EQ(Answers({plain.begin(), plain.end()}), answers);
}

TEST(State, ChangesOfUnknownThingsDoNotFit) {
  State state = WithAnIteration();
  EXPECT_FALSE(Fits(state, LifeBegun{}).ok());
  EXPECT_FALSE(Fits(state, DatasetUnregistered{"x"}).ok());
  EXPECT_FALSE(Fits(state, JobRemoved{JobId(9)}).ok());
  EXPECT_FALSE(Fits(state, IterationCreated{IterationId(2), JobId(1), 0}).ok());
  EXPECT_FALSE(
      Fits(state, IterationCreated{IterationId(2), JobId(1), 1, {ShardingPolicy::kData, 2, {0, 2}}})
          .ok());
  EXPECT_FALSE(
      Fits(state, IterationCreated{IterationId(2), JobId(1), 1, {ShardingPolicy::kData, 2, {}}})
          .ok());
  EXPECT_FALSE(Fits(state, IterationAltered{kIteration, p::PartitionOpened{PartitionId(7)}}).ok());
  EXPECT_FALSE(Fits(state, WorkerGone{WorkerId(1)}).ok());
}

// --- Data that follow from the records ------------------------------------------------

// Makes random changes of the partitions, readers and datasets of two jobs with two iterations
// each.
class KeptDataTest : public ::testing::Test {
 protected:
  size_t Draw(size_t below) { return random_() % below; }

  void RegisterDataset() {
    const char* const id = Draw(2) == 0 ? "1000" : "v/x";
    state_.Apply(DatasetRegistered{std::make_shared<const DatasetRecord>(
        DatasetRecord{id, std::string(Draw(99), 'x'), {.plan = {{.count = 100}}}, ++edition_})});
  }
  void CreateJob(uint64_t id) {
    RegisterDataset();
    const auto& [dataset_id, dataset] = *state_.datasets.begin();
    const std::string name = ScopedName(NamespaceOf(dataset_id), absl::StrCat(id));
    state_.Apply(JobCreated{{.id = JobId(id), .name = name, .dataset = dataset}});
    for (int64_t repetition : {0, 1}) {
      state_.Apply(IterationCreated{IterationId(state_.next_iteration), JobId(id), repetition});
    }
  }
  // Applies the change if it fits.
  void Try(const Change& change) {
    if (Fits(state_, change).ok()) state_.Apply(change);
  }
  void Alter(IterationId id, p::IterationChange change) {
    Try(IterationAltered{id, std::move(change)});
  }
  void ChangeAPartition(const IterationState& iteration) {
    const IterationId id = iteration.id;
    const size_t partitions = iteration.record.partitions.size();
    if (partitions == 0 || Draw(8) == 0)
      return Alter(id, p::PartitionOpened{PartitionId(partitions + 1)});
    const PartitionId partition(1 + Draw(partitions));
    const Placement now = iteration.record.partition(partition).placement;
    const auto first = static_cast<Index>(Draw(3));
    const IndexSet some = IndexSet::Of(first, first + static_cast<Index>(Draw(3)));
    const auto audience = Draw(2) == 0 ? std::nullopt : std::optional(some);
    if (Draw(3) > 0)
      return Alter(id, p::PartitionAssigned{partition, now, WorkerId(1 + Draw(4)), audience});
    if (Draw(2) == 0) return Alter(id, p::AudienceExtended{partition, some});
    Alter(id, p::PlacementRaised{partition, Placement(now.value() + 1)});
  }
  void ChangeAReader(const IterationState& iteration) {
    const ClientId client(1 + Draw(3));
    if (!iteration.record.FindReader(client))
      return Alter(iteration.id, p::ReaderJoined{client, Incarnation(1)});
    if (Draw(2) == 0) return Alter(iteration.id, p::ReaderReplaced{client, Incarnation(2)});
    Alter(iteration.id, p::ReaderGone{client, p::ReaderStatus::kLeft});
  }
  // Compares the partitions of each reader with those that a search finds.
  static void ExpectPartitionsFor(const p::IterationRecord& record) {
    IndexSet to_all;
    for (size_t at = 0; at < record.partitions.size(); ++at)
      if (!record.partitions[at].audience) to_all.Add(static_cast<Index>(at));
    EXPECT_EQ(record.PartitionsFor(std::nullopt), to_all);
    for (size_t reader = 0; reader <= record.readers.size(); ++reader) {
      IndexSet found;
      for (size_t at = 0; at < record.partitions.size(); ++at)
        if (record.partitions[at].MayServe(reader)) found.Add(static_cast<Index>(at));
      EXPECT_EQ(record.PartitionsFor(reader), found);
    }
  }
  // Compares the state with the one that a dispatcher reads when it starts.
  void ExpectTheSameOnceRead() const {
    const absl::StatusOr<std::vector<std::string>> pieces = EncodeState(state_);
    ASSERT_TRUE(pieces.ok()) << pieces.status();
    const absl::StatusOr<State> read = DecodeState(*pieces);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->iterations, state_.iterations);
    EXPECT_EQ(read->repetitions, state_.repetitions);
    EXPECT_EQ(read->job_names, state_.job_names);
    EXPECT_EQ(read->placed, state_.placed);
    EXPECT_EQ(read->uses, state_.uses);
    EXPECT_EQ(EncodeState(*read).value(), *pieces);
  }
  void Step() {
    if (state_.jobs.size() < 2) CreateJob(state_.next_job);
    if (state_.iterations.empty()) return Try(JobRemoved{state_.jobs.begin()->first});
    const auto at = static_cast<ptrdiff_t>(Draw(state_.iterations.size()));
    const IterationState& iteration = std::next(state_.iterations.begin(), at)->second;
    switch (Draw(60)) {
      case 0:
        return Try(JobRemoved{iteration.job});
      case 1:
        return Try(JobCancelled{iteration.job});
      case 2:
        return Try(IterationFailed{iteration.id, absl::InternalError("why")});
      case 3: {
        p::IterationClosed closed;
        for (size_t p = 0; p < iteration.record.partitions.size(); ++p)
          closed.ends.push_back(static_cast<Index>(Draw(4)));
        return Alter(iteration.id, std::move(closed));
      }
      case 4:
        return Alter(iteration.id, p::IterationReopened{});
      case 5:
        return Alter(iteration.id, p::IterationFinished{});
      case 6:
        return Try(IterationRetired{iteration.id});
      case 7:
        return RegisterDataset();
      case 8:
        return Try(DatasetUnregistered{"1000"});
      case 9:
      case 10:
      case 11:
        return ChangeAReader(iteration);
      default:
        return ChangeAPartition(iteration);
    }
  }

  std::mt19937_64 random_;
  uint64_t edition_ = 0;
  State state_;
};

TEST_F(KeptDataTest, AreWhatFollowsFromTheRecordsAfterEachChange) {
  size_t most = 0;
  for (int step = 0; step < 5'000; ++step) {
    Step();
    ASSERT_EQ(state_.placed, state_.ComputePlaced()) << "step " << step;
    ASSERT_EQ(state_.uses, state_.ComputeUses()) << "step " << step;
    for (const auto& [id, iteration] : state_.iterations) {
      ASSERT_TRUE(p::IsKept(iteration.record)) << "step " << step;
      ExpectPartitionsFor(iteration.record);
    }
    size_t workers = 0;
    for (uint64_t worker = 1; worker <= 4; ++worker)
      workers += state_.PartitionsOn(WorkerId(worker)) > 0 ? 1 : 0;
    most = std::max(most, workers);
    if (step % 100 == 0) ExpectTheSameOnceRead();
  }
  EXPECT_EQ(most, 4u);
}

TEST(PlacedPartitions, AreFoundByWorkerAndIterationInOrder) {
  PlacedPartitions placed;
  const WorkerId worker(1);
  for (uint64_t partition : {3, 1, 2}) placed.Add(worker, {IterationId(7), PartitionId(partition)});
  placed.Add(worker, {IterationId(5), PartitionId(9)});
  placed.Add(WorkerId(2), {IterationId(6), PartitionId(1)});
  EXPECT_EQ(placed.CountOn(worker), 4);
  EXPECT_THAT(placed.IterationsOn(worker), ElementsAre(IterationId(5), IterationId(7)));
  EXPECT_THAT(placed.On(worker, IterationId(7)),
              ElementsAre(PartitionId(1), PartitionId(2), PartitionId(3)));
  EXPECT_TRUE(placed.On(worker, IterationId(6)).empty());
  placed.Add(WorkerId(2), {IterationId(7), PartitionId(4)});
  EXPECT_EQ(placed.CountOf(IterationId(7)), 4);
  EXPECT_EQ(placed.MostOn(IterationId(7)), 3);
  EXPECT_EQ(placed.WorkersOf(IterationId(7)), 2);
  for (uint64_t partition : {1, 2}) placed.Remove(worker, {IterationId(7), PartitionId(partition)});
  EXPECT_EQ(placed.MostOn(IterationId(7)), 1);
  EXPECT_EQ(placed.MostOn(IterationId(4)), 0);
  EXPECT_EQ(placed.WorkersOf(IterationId(4)), 0);
  placed.Remove(worker, {IterationId(5), PartitionId(9)});
  EXPECT_THAT(placed.IterationsOn(worker), ElementsAre(IterationId(7)));
  EXPECT_EQ(placed.CountOn(WorkerId(3)), 0);
}

TEST(NamespaceUses, AreOfJobsClientsAndDefinitions) {
  State state = WithAnIteration();
  const int64_t bytes = BytesOf("definition", state.datasets.at("1000")->summary);
  EXPECT_EQ(state.uses.Of("default"), (NamespaceUse{.jobs = 1, .dataset_bytes = bytes}));
  EXPECT_EQ(state.uses.Of("v"), NamespaceUse());
  EXPECT_FALSE(state.uses.HasOneReference(*state.datasets.at("1000")));  // the job keeps it too
  const IterationId second(2);
  state.Apply(IterationCreated{second, JobId(1), 1});
  for (const IterationId iteration : {kIteration, second})
    state.Apply(IterationAltered{iteration, p::ReaderJoined{ClientId(1), Incarnation(1)}});
  EXPECT_EQ(state.uses.Of("default").clients, 1);  // the same client reads both
  const p::ReaderGone gone{ClientId(1), p::ReaderStatus::kLeft};
  state.Apply(IterationAltered{second, gone});
  EXPECT_EQ(state.uses.Of("default").clients, 1);
  state.Apply(IterationAltered{kIteration, gone});
  EXPECT_EQ(state.uses.Of("default").clients, 0);
  state.Apply(IterationAltered{second, p::ReaderReplaced{ClientId(1), Incarnation(2)}});
  EXPECT_EQ(state.uses.Of("default").clients, 1);
  state.Apply(DatasetUnregistered{"1000"});
  EXPECT_EQ(state.uses.Of("default").dataset_bytes, bytes);
  state.Apply(JobCancelled{JobId(1)});
  EXPECT_EQ(state.uses.Of("default"), (NamespaceUse{.dataset_bytes = bytes}));
  state.Apply(JobRemoved{JobId(1)});
  EXPECT_EQ(state.uses, NamespaceUses());
}

}  // namespace
}  // namespace penstock::control
