// SPDX-License-Identifier: Apache-2.0
// The decisions of the iteration coordinator about readers that join, leave, die and return, one
// behaviour each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/protocol/coordinator/iteration_coordinator.h"
#include "tests/control/protocol/coordinator_harness.h"

namespace penstock::protocol {
namespace {

TEST(IterationCoordinator, WaitsNoLongerForAClientThatIsDead) {
  Harness harness;
  harness.Joins(kAnna);
  harness.Joins(kBert);
  harness.Assign();
  harness.Reports(kBert, Placement(1), Range(0, 1), Range(1, 2));
  harness.Do(OnRelieve(harness.record, harness.context, kPartition));
  harness.Reports(kAnna, Placement(2), {});
  harness.Do(OnReaderExpired(harness.record, harness.context, kBert));
  harness.Sent<struct Assign>();
  harness.Assign();
  EXPECT_EQ(harness.Sent<struct Assign>()[0].skip, Range(0, 1))
      << "what it took, not what it received";
}

TEST(IterationCoordinator, OwesNothingToReadersOfAWindowAndWaitsForNone) {
  Harness harness(CommitPolicy::kNever);
  harness.Joins(kAnna);
  harness.Joins(kBert);
  harness.Assign();
  harness.Do(
      OnBookmark(harness.record, harness.context, kWorker, kPartition, Placement(1), {7, "x"}));
  harness.Do(OnReaderExpired(harness.record, harness.context, kBert));
  EXPECT_EQ(harness.record.partition(kPartition).placement, Placement(1)) << "nothing moves";
  harness.Do(OnWorkerGone(harness.record, harness.context, kWorker));
  EXPECT_THAT(Assignable(harness.record, harness.context), testing::ElementsAre(kPartition));
  harness.Sent<struct Assign>();
  harness.Assign(kOther);
  const auto assigned = harness.Sent<struct Assign>();
  ASSERT_EQ(assigned.size(), 1u);
  EXPECT_EQ(assigned[0].bookmark->index, 7);
  EXPECT_TRUE(assigned[0].skip.empty());
}

TEST(IterationCoordinator, RemovesReadersOfAWindowFromItsWorkers) {
  Harness harness(CommitPolicy::kNever);
  for (const ClientId client : {kAnna, kBert, kCleo}) harness.Joins(client);
  harness.Assign();
  harness.Dies(kBert);
  harness.Do(OnLeave(harness.record, harness.context, kCleo, kFirst, {}));
  const auto removed = harness.Sent<RemoveReader>();
  ASSERT_EQ(removed.size(), 2u);
  EXPECT_EQ(removed[0].client, kBert);
  EXPECT_EQ(removed[0].worker, kWorker);
  EXPECT_EQ(removed[0].placement, Placement(1));
  EXPECT_EQ(removed[1].client, kCleo);
  // The messages may have been lost with the worker's stream.
  const HeldPlacement held[] = {{kPartition, Placement(1)}};
  harness.Do(OnWorkerRegisters(harness.record, harness.context, kWorker, held));
  EXPECT_EQ(harness.Sent<RemoveReader>().size(), 2u);
}

TEST(IterationCoordinator, AddsANewClientToThePlacementsReaders) {
  Harness harness;
  harness.Joins(kAnna);
  harness.Assign();
  harness.Joins(kBert);
  const auto added = harness.Sent<AddReader>();
  ASSERT_EQ(added.size(), 1u);
  EXPECT_THAT(added[0].reader, IsReader(Reader{kBert, kFirst}));
  EXPECT_EQ(harness.record.partition(kPartition).placement, Placement(1)) << "nothing moves";
}

TEST(IterationCoordinator, ALateReaderGetsTheUncommittedElementsOfADeadOne) {
  Harness harness(CommitPolicy::kExplicit);
  harness.Joins(kAnna);
  harness.Assign();
  harness.Ends(2);
  harness.Reports(kAnna, Placement(1), Range(0, 2));
  ASSERT_TRUE(harness.record.closed);
  harness.Dies(kAnna);
  harness.Joins(kBert);
  EXPECT_FALSE(harness.record.closed);
  EXPECT_EQ(harness.Sent<ToClient<End>>().size(), 1u) << "hers alone";
  harness.Assign();
  EXPECT_EQ(harness.Sent<struct Assign>().back().skip, IndexSet());
}

TEST(IterationCoordinator, NotifiesALateReaderOfTheEndAtOnce) {
  Harness harness;
  harness.Joins(kAnna);
  harness.Assign();
  harness.Ends(0);
  harness.Sent<ToClient<End>>();
  harness.Joins(kBert);
  EXPECT_EQ(harness.Sent<Welcome>().size(), 2u);
  EXPECT_EQ(harness.Sent<ToClient<End>>().size(), 1u);
}

TEST(IterationCoordinator, KeepsTheHistoryOfALeavingReader) {
  Harness harness;
  harness.Joins(kAnna);
  harness.Joins(kBert);
  harness.Assign();
  harness.Do(OnLeave(harness.record, harness.context, kAnna, kFirst, {{Range(0, 4)}}));
  EXPECT_EQ(harness.Sent<ToClient<Left>>().size(), 1u);
  EXPECT_EQ(CommittedIndices(harness.record, kPartition), Range(0, 4));
  EXPECT_EQ(harness.record.partition(kPartition).placement, Placement(2));
}

// The answer was lost with the client's stream, or with the dispatcher's process.
TEST(IterationCoordinator, ConfirmsALeaveAgain) {
  Harness harness;
  harness.Joins(kAnna);
  harness.Assign();
  harness.Do(OnLeave(harness.record, harness.context, kAnna, kFirst, {{Range(0, 3)}}));
  ASSERT_EQ(harness.Sent<ToClient<Left>>().size(), 1u);
  const IterationRecord left = harness.record;

  harness.Joins(kAnna);
  EXPECT_THAT(harness.Sent<Refused>(), ::testing::IsEmpty());
  EXPECT_EQ(harness.Sent<Welcome>().size(), 2u);
  EXPECT_EQ(harness.Sent<ToClient<Left>>().size(), 1u);
  EXPECT_EQ(harness.record, left);
}

TEST(IterationCoordinator, DoesNotWaitForAClientThatLeftWithUncommittedElements) {
  Harness harness(CommitPolicy::kExplicit);
  harness.Joins(kAnna);
  harness.Joins(kBert);
  harness.Assign();
  harness.Reports(kAnna, Placement(1), Range(0, 2), Range(2, 3));
  harness.Commits(kAnna, {Range(0, 1)});
  harness.Do(OnLeave(harness.record, harness.context, kAnna, kFirst, {{Range(0, 2)}}));
  EXPECT_EQ(harness.Sent<ToClient<Left>>().size(), 1u);
  EXPECT_EQ(CommittedIndices(harness.record, kPartition), Range(0, 1));
  harness.Reports(kBert, Placement(2), {});
  harness.Sent<struct Assign>();
  harness.Assign();
  const auto assigned = harness.Sent<struct Assign>();
  EXPECT_EQ(assigned[0].skip, Range(0, 2)) << "what it took, not what it received";
  EXPECT_THAT(assigned[0].readers, testing::ElementsAre(IsReader(Reader{kBert, kFirst})));
  harness.Ends(3);
  harness.Reports(kBert, Placement(2), Range(2, 3));
  EXPECT_FALSE(harness.record.closed) << "what it took may yet be Bert's";
  harness.Do(OnReaderExpired(harness.record, harness.context, kAnna));
  harness.Reports(kBert, Placement(3), {});
  harness.Assign();
  IndexSet left = Range(0, 1);
  left.Add(2);
  EXPECT_EQ(harness.Sent<struct Assign>()[0].skip, left);
}

TEST(IterationCoordinator, RestoresTheStateOfAClientThatLeft) {
  Harness harness(CommitPolicy::kExplicit);
  harness.Joins(kAnna);
  harness.Joins(kBert);
  harness.Assign();
  harness.Do(OnLeave(harness.record, harness.context, kAnna, kFirst, {{Range(0, 3)}}));
  harness.Restarts(kAnna, {Range(0, 2)});
  EXPECT_TRUE(harness.Sent<Refused>().empty());
  harness.Reports(kBert, Placement(2), {});
  harness.Assign();
  const auto assigned = harness.Sent<struct Assign>();
  EXPECT_EQ(assigned.back().skip, Range(0, 2));
  EXPECT_THAT(assigned.back().readers, testing::ElementsAre(IsReader(Reader{kAnna, kSecond}),
                                                            IsReader(Reader{kBert, kFirst})));
}

TEST(IterationCoordinator, AnswersACommitThatIsRepeatedWithoutJournalingItTwice) {
  Harness harness(CommitPolicy::kExplicit);
  harness.Joins(kAnna);
  harness.Commits(kAnna, {Range(0, 2)});
  const Decision again =
      OnCommit(harness.record, harness.context, kAnna, kFirst, {1, {Range(0, 2)}});
  EXPECT_TRUE(again.changes.empty());
  EXPECT_EQ(again.messages.size(), 1u);
}

TEST(IterationCoordinator, TakesUpASessionFromItsStateAndMovesEverything) {
  Harness harness(CommitPolicy::kExplicit);
  harness.Joins(kAnna);
  harness.Joins(kBert);
  harness.Assign();
  harness.Commits(kAnna, {Range(0, 1)});
  harness.Restarts(kAnna, {Range(0, 2)});
  EXPECT_EQ(Of(harness.record.readers[0].committed, kPartition), Range(0, 2));
  EXPECT_EQ(harness.record.partition(kPartition).placement, Placement(2));
  harness.Restarts(kAnna, {Range(0, 2)});
  EXPECT_EQ(harness.record.partition(kPartition).placement, Placement(2)) << "welcomed again only";
}

TEST(IterationCoordinator, RefusesAStateThatIsNotTheCommittedOneOfTheDead) {
  Harness harness(CommitPolicy::kExplicit);
  harness.Joins(kAnna);
  harness.Joins(kBert);
  harness.Commits(kAnna, {Range(0, 2)});
  harness.Do(OnReaderExpired(harness.record, harness.context, kAnna));
  harness.Sent<Refused>();
  harness.Restarts(kAnna, {Range(0, 3)});
  harness.Restarts(kAnna, {Range(0, 1)});
  harness.Do(OnConnect(harness.record, harness.context, {kAnna, kFirst, std::nullopt}));
  const auto refused = harness.Sent<Refused>();
  ASSERT_EQ(refused.size(), 3u);
  EXPECT_EQ(refused[0].why, Refusal::kStateIsNewer);
  EXPECT_EQ(refused[1].why, Refusal::kStateIsOlder);
  EXPECT_EQ(refused[2].why, Refusal::kDeclaredDead);
  harness.Restarts(kAnna, {Range(0, 2)});
  EXPECT_EQ(harness.record.readers[0].status, ReaderStatus::kActive);
}

// When the sets are forgotten, their marks still tell.
TEST(IterationCoordinator, RefusesAnotherStateThanCommittedForAFinishedIteration) {
  for (const bool forgets : {false, true}) {
    Harness harness(CommitPolicy::kExplicit);
    harness.Joins(kAnna);
    harness.Assign();
    harness.Reports(kAnna, Placement(1), Range(0, 4));
    harness.Ends(4);
    harness.Commits(kAnna, {Range(0, 4)});
    ASSERT_TRUE(harness.record.finished);
    if (forgets) ForgetHistories(harness.record);
    harness.Sent<Refused>();
    harness.Sent<ToClient<End>>();
    harness.Restarts(kAnna, {Range(0, 4)});
    EXPECT_EQ(harness.Sent<ToClient<End>>().size(), 1u);
    harness.Restarts(kAnna, {Range(0, 3)});
    harness.Restarts(kAnna, {Range(0, 5)});
    harness.Restarts(kAnna, {Range(1, 5)});
    const auto refused = harness.Sent<Refused>();
    ASSERT_EQ(refused.size(), 3u);
    EXPECT_EQ(refused[0].why, Refusal::kStateIsOlder);
    EXPECT_EQ(refused[1].why, Refusal::kFinished);
    EXPECT_TRUE(harness.Sent<ToClient<End>>().empty());
  }
}

}  // namespace
}  // namespace penstock::protocol
