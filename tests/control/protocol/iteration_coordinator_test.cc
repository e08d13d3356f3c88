// SPDX-License-Identifier: Apache-2.0
// The decisions of the iteration coordinator, one behaviour each. explore_test.cc explores how they
// work together.
#include "control/protocol/coordinator/iteration_coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "control/protocol/receiver.h"
#include "control/protocol/sender.h"

namespace penstock::protocol {
namespace {

constexpr ClientId kAnna{1};
constexpr ClientId kBert{2};
constexpr ClientId kCleo{3};
constexpr Incarnation kFirst{1};
constexpr Incarnation kSecond{2};
constexpr WorkerId kWorker{7};
constexpr WorkerId kOther{8};
constexpr PartitionId kPartition{1};

// Readers are equal by identity; this compares the consumer too.
MATCHER_P(IsReader, reader, "") {
  return arg == reader && arg.consumer == reader.consumer;
}

// A record and its context, as a dispatcher keeps them; collects the messages.
class Harness {
 public:
  explicit Harness(CommitPolicy keep = CommitPolicy::kOnDelivery) {
    record.commit_policy = keep;
    context = MakeIterationContext(record);
    Do(OpenPartition(record, context));
  }
  void Do(Decision decision) {
    do {
      for (const IterationChange& change : decision.changes) {
        ASSERT_TRUE(Fits(record, change));
        Apply(record, change);
      }
      for (Message& message : decision.messages) sent.push_back(std::move(message));
      decision = Consequences(record, context);
    } while (!decision.empty());
  }
  void Joins(ClientId client) { Do(OnConnect(record, context, {client, kFirst, std::nullopt})); }
  void Restarts(ClientId client, ReceivedSets state) {
    Do(OnConnect(record, context, {client, kSecond, std::move(state)}));
  }
  void Reports(ClientId client, Placement g, IndexSet delivered, IndexSet received = {}) {
    Do(OnReport(record, context, client, kFirst, {kPartition, g, delivered, received}));
  }
  void Gives(ClientId client, Placement g, IndexSet returned) {
    Do(OnReport(record, context, client, kFirst,
                {.partition = kPartition, .placement = g, .returned = std::move(returned)}));
  }
  void Waits(ClientId client) {
    OnWaits(record, context, client, kFirst);
    Do({});
  }
  void Dies(ClientId client) { Do(OnReaderExpired(record, context, client)); }
  void Commits(ClientId client, ReceivedSets committed) {
    Do(OnCommit(record, context, client, kFirst, {1, std::move(committed)}));
  }
  void Assign(WorkerId worker = kWorker) { Do(AssignTo(record, context, kPartition, worker)); }
  void Ends(Index end) {
    Do(OnEnded(record, context, kWorker, kPartition, record.partition(kPartition).placement, end));
  }
  // Removes and returns the messages of one kind.
  template <class M>
  std::vector<M> Sent() {
    std::vector<M> some;
    std::erase_if(sent, [&](const Message& message) {
      const M* m = std::get_if<M>(&message);
      if (m) some.push_back(*m);
      return m != nullptr;
    });
    return some;
  }

  IterationRecord record;
  IterationContext context;
  std::vector<Message> sent;
};

IndexSet Range(Index begin, Index end) {
  return IndexSet::Of(begin, end);
}

TEST(IterationCoordinator, AssignsANewPartitionWithoutAFence) {
  Harness harness;
  EXPECT_TRUE(Assignable(harness.record, harness.context).empty());  // there is no reader
  harness.Joins(kAnna);
  EXPECT_THAT(Assignable(harness.record, harness.context), testing::ElementsAre(kPartition));
  harness.Assign();
  const auto assigned = harness.Sent<struct Assign>();
  ASSERT_EQ(assigned.size(), 1u);
  EXPECT_TRUE(assigned[0].skip.empty());
  EXPECT_THAT(assigned[0].readers, testing::ElementsAre(IsReader(Reader{kAnna, kFirst})));
  EXPECT_TRUE(harness.Sent<ToClient<Fence>>().empty());
}

TEST(IterationCoordinator, WaitsForEveryAnswerBeforeItAssignsAgain) {
  Harness harness;
  harness.Joins(kAnna);
  harness.Joins(kBert);
  harness.Assign();
  harness.Do(OnWorkerGone(harness.record, harness.context, kWorker));
  EXPECT_EQ(harness.Sent<ToClient<Fence>>().size(), 2u);
  harness.Reports(kAnna, Placement(2), Range(0, 2), Range(4, 5));
  EXPECT_TRUE(Assignable(harness.record, harness.context).empty());
  harness.Reports(kBert, Placement(1), Range(2, 3));  // sent before the fence arrived
  EXPECT_TRUE(Assignable(harness.record, harness.context).empty());
  harness.Reports(kBert, Placement(2), Range(3, 4));
  harness.Sent<struct Assign>();
  harness.Assign(kOther);
  EXPECT_EQ(harness.Sent<struct Assign>()[0].skip, Range(0, 5));
}

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

TEST(IterationCoordinator, ClosesWhenAllIsDeliveredAndNotifiesOfTheEnd) {
  Harness harness;
  harness.Joins(kAnna);
  harness.Assign();
  harness.Ends(3);
  harness.Reports(kAnna, Placement(1), Range(0, 2), Range(2, 3));
  EXPECT_FALSE(harness.record.closed) << "one is received and not delivered";
  harness.Reports(kAnna, Placement(1), Range(2, 3));
  EXPECT_TRUE(harness.record.closed);
  EXPECT_EQ(harness.Sent<ToClient<End>>().size(), 1u);
  EXPECT_TRUE(harness.record.finished);
}

// The partition that did not allow it the last time is checked first.
TEST(IterationCoordinator, ClosesAfterTheLastPartitionWhicheverItIs) {
  std::vector<uint64_t> order = {1, 2, 3, 4};
  do {
    for (size_t moved_after = 1; moved_after < order.size(); ++moved_after) {
      Harness harness;
      harness.Joins(kAnna);
      for (int n = 2; n <= 4; ++n) harness.Do(OpenPartition(harness.record, harness.context));
      const auto assign = [&](PartitionId partition) {
        harness.Do(AssignTo(harness.record, harness.context, partition, kWorker));
      };
      const auto read = [&](PartitionId partition) {
        const Placement g = harness.record.partition(partition).placement;
        harness.Do(OnReport(harness.record, harness.context, kAnna, kFirst,
                            {partition, g, Range(0, 2), {}}));
        harness.Do(OnEnded(harness.record, harness.context, kWorker, partition, g, 2));
      };
      for (const uint64_t partition : order) assign(PartitionId(partition));
      for (size_t n = 0; n < order.size(); ++n) {
        EXPECT_FALSE(harness.record.closed);
        if (n == moved_after)
          harness.Do(OnRelieve(harness.record, harness.context, PartitionId(order[0])));
        read(PartitionId(order[n]));
      }
      EXPECT_FALSE(harness.record.closed) << "partition " << order[0] << " has moved";
      read(PartitionId(order[0]));
      EXPECT_FALSE(harness.record.closed) << "no worker has it";
      assign(PartitionId(order[0]));
      read(PartitionId(order[0]));
      EXPECT_TRUE(harness.record.closed);
    }
  } while (std::ranges::next_permutation(order).found);
}

TEST(IterationCoordinator, RecallsHeldElementsForAWaitingClient) {
  Harness harness;
  harness.Joins(kAnna);
  harness.Joins(kBert);
  harness.Assign();
  harness.Reports(kAnna, Placement(1), Range(0, 1), Range(1, 3));
  harness.Reports(kBert, Placement(1), {});
  harness.Waits(kBert);
  EXPECT_THAT(harness.Sent<ToClient<Fence>>(), testing::IsEmpty()) << "more may be sent to him";
  harness.Ends(3);
  const auto fences = harness.Sent<ToClient<Fence>>();
  ASSERT_EQ(fences.size(), 2u);
  EXPECT_TRUE(fences[0].give_back);
  harness.Gives(kAnna, Placement(2), Range(1, 3));
  harness.Reports(kBert, Placement(2), {});
  harness.Assign();
  EXPECT_EQ(harness.Sent<struct Assign>().back().skip, Range(0, 1));
  harness.Ends(3);
  EXPECT_THAT(harness.Sent<ToClient<Fence>>(), testing::IsEmpty())
      << "he has not said again that he waits";
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

TEST(IterationCoordinator, AsksAgainUnderTheSamePlacementAfterARestart) {
  Harness harness;
  harness.Joins(kAnna);
  harness.Assign();
  harness.Do(OnWorkerGone(harness.record, harness.context, kWorker));
  harness.context = MakeIterationContext(harness.record);
  harness.sent.clear();
  harness.Joins(kAnna);
  const auto fences = harness.Sent<ToClient<Fence>>();
  ASSERT_EQ(fences.size(), 1u);
  EXPECT_EQ(fences[0].placement, Placement(2));
}

TEST(IterationCoordinator, PlacesAgainAPartitionThatNeverReachedItsWorker) {
  Harness harness;
  harness.Joins(kAnna);
  harness.Assign();
  const HeldPlacement held[] = {{kPartition, Placement(1)}};
  harness.Do(OnWorkerRegisters(harness.record, harness.context, kWorker, held));
  EXPECT_EQ(harness.record.partition(kPartition).placement, Placement(1));
  harness.Do(OnWorkerRegisters(harness.record, harness.context, kWorker, {}));
  EXPECT_EQ(harness.record.partition(kPartition).placement, Placement(2));
  harness.Do(OnWorkerRegisters(harness.record, harness.context, kOther, held));
  EXPECT_EQ(harness.Sent<Unassign>().back().worker, kOther);
}

TEST(IterationCoordinator, ReplaysFromTheNewestBookmarkBelowTheFirstMissingIndex) {
  Harness harness;
  harness.Joins(kAnna);
  harness.Assign();
  for (Index i : {2, 4, 6})
    harness.Do(
        OnBookmark(harness.record, harness.context, kWorker, kPartition, Placement(1), {i, "b"}));
  harness.Reports(kAnna, Placement(1), Range(0, 5), Range(6, 8));
  harness.Do(OnWorkerGone(harness.record, harness.context, kWorker));
  harness.Reports(kAnna, Placement(2), {});
  harness.Sent<struct Assign>();
  harness.Assign();
  EXPECT_EQ(harness.Sent<struct Assign>()[0].bookmark->index, 4);
}

TEST(IterationCoordinator, KeepsABookmarkBelowTheCommittedIndices) {
  Harness harness;
  harness.Joins(kAnna);
  harness.Assign();
  for (Index i = 1; i <= 200; ++i) {
    if (i % 20 == 0) harness.Reports(kAnna, Placement(1), Range(i - 20, i - 10));
    harness.Do(
        OnBookmark(harness.record, harness.context, kWorker, kPartition, Placement(1), {i, "b"}));
    const auto& bookmarks = harness.record.partition(kPartition).bookmarks;
    ASSERT_LE(bookmarks.size(), 16u);
    ASSERT_EQ(bookmarks.back().index, i);
    ASSERT_LE(bookmarks.front().index,
              std::max<Index>(1, CommittedIndices(harness.record, kPartition).FirstMissing()));
  }
}

TEST(IterationCoordinator, IgnoresMessagesOfAnOlderPlacement) {
  Harness harness;
  harness.Joins(kAnna);
  harness.Assign();
  harness.Do(OnRelieve(harness.record, harness.context, kPartition));
  harness.Reports(kAnna, Placement(2), {});
  harness.Assign();
  const IterationRecord before = harness.record;
  harness.Do(OnEnded(harness.record, harness.context, kWorker, kPartition, Placement(1), 0));
  harness.Do(
      OnBookmark(harness.record, harness.context, kWorker, kPartition, Placement(1), {1, ""}));
  EXPECT_EQ(harness.record, before);
}

TEST(Sender, OffersDoubtfulElementsOnlyAfterTheClientsAnswer) {
  Sender sender(Assign{.worker = kWorker,
                       .partition = kPartition,
                       .placement = Placement(1),
                       .skip = Range(0, 1),
                       .bookmark = std::nullopt,
                       .readers = {{kAnna, kFirst}, {kBert, kFirst}}});
  ASSERT_TRUE(sender.OnLinkUp(kAnna, kFirst, {}));
  EXPECT_FALSE(sender.OnLinkUp(kAnna, kSecond, {})) << "another process is no reader";
  sender.OnPassed(0);
  sender.OnSent(kAnna, 1);
  sender.OnSent(kAnna, 2);
  sender.OnEnd(3);
  EXPECT_TRUE(sender.ended());
  sender.OnLinkBroken(kAnna);
  EXPECT_FALSE(sender.ended());
  EXPECT_TRUE(sender.again().empty());
  ASSERT_TRUE(sender.OnLinkUp(kAnna, kFirst, Range(1, 2)));
  EXPECT_EQ(sender.again(), Range(2, 3));
  EXPECT_FALSE(sender.OnAddReader({kBert, kFirst})) << "it is one already";
}

TEST(Sender, RefusedElementsAreForAnyone) {
  Sender sender(Assign{.worker = kWorker,
                       .partition = kPartition,
                       .placement = Placement(1),
                       .skip = {},
                       .bookmark = std::nullopt,
                       .readers = {{kAnna, kFirst}, {kBert, kFirst}}});
  ASSERT_TRUE(sender.OnLinkUp(kAnna, kFirst, {}));
  ASSERT_TRUE(sender.OnLinkUp(kBert, kFirst, {}));
  sender.OnSent(kAnna, 0);
  sender.OnEnd(1);
  sender.OnRefused(kAnna, 0);
  EXPECT_FALSE(sender.ended());
  EXPECT_EQ(sender.again(), Range(0, 1));
  EXPECT_TRUE(sender.unconfirmed().empty());
  sender.OnSent(kBert, 0);
  EXPECT_TRUE(sender.ended());
  sender.OnLinkBroken(kAnna);
  EXPECT_TRUE(sender.ended());
}

TEST(Sender, ElementsRefusedAfterABreakAreForAnyone) {
  Sender sender(Assign{.worker = kWorker,
                       .partition = kPartition,
                       .placement = Placement(1),
                       .skip = {},
                       .bookmark = std::nullopt,
                       .readers = {{kAnna, kFirst}}});
  ASSERT_TRUE(sender.OnLinkUp(kAnna, kFirst, {}));
  sender.OnSent(kAnna, 0);
  sender.OnLinkBroken(kAnna);
  ASSERT_TRUE(sender.OnLinkUp(kAnna, kFirst, {}));
  sender.OnRefused(kAnna, 0);
  EXPECT_EQ(sender.again(), Range(0, 1));
  sender.OnSent(kAnna, 0);
  EXPECT_TRUE(sender.again().empty());
}

TEST(Receiver, DropsOlderElementsAfterAFenceAndReportsItsHoldings) {
  Receiver receiver(kPartition);
  EXPECT_EQ(receiver.OnElement(Placement(1), 0), ReceiveResult::kAccepted);
  EXPECT_EQ(receiver.OnElement(Placement(1), 1), ReceiveResult::kAccepted);
  receiver.OnDelivered(0);
  const Report answer = receiver.OnFence(Placement(2));
  EXPECT_EQ(answer.delivered, Range(0, 1));
  EXPECT_EQ(answer.received, Range(1, 2));
  EXPECT_EQ(receiver.OnElement(Placement(1), 2), ReceiveResult::kOldPlacement);
  EXPECT_EQ(receiver.OnElement(Placement(2), 1), ReceiveResult::kAlreadyHere);
  EXPECT_FALSE(receiver.News().has_value());
  receiver.OnConnected();
  EXPECT_EQ(receiver.News()->delivered, Range(0, 1)) << "all again on a new stream";
}

TEST(Receiver, OnlyTheFirstReportOnAStreamIsWhole) {
  Receiver receiver(kPartition);
  receiver.OnElement(Placement(1), 0);
  EXPECT_FALSE(receiver.ReceivedNews()->whole);
  receiver.OnElement(Placement(1), 1);
  EXPECT_FALSE(receiver.News()->whole) << "it does not name what was said before";
  receiver.OnConnected();
  const std::optional<Report> first = receiver.ReceivedNews();
  EXPECT_TRUE(first->whole);
  EXPECT_EQ(first->received, Range(0, 2));
  receiver.OnElement(Placement(1), 2);
  EXPECT_FALSE(receiver.News()->whole);
}

TEST(Record, FitsNoChangeOutOfOrder) {
  IterationRecord record;
  EXPECT_FALSE(Fits(record, PlacementRaised{kPartition, Placement(2)}));
  EXPECT_FALSE(Fits(record, PartitionOpened{PartitionId(2)}));
  Apply(record, PartitionOpened{kPartition});
  EXPECT_FALSE(Fits(record, PlacementRaised{kPartition, Placement(1)})) << "it must rise";
  EXPECT_FALSE(Fits(record, PartitionAssigned{kPartition, Placement(2), kWorker}));
  EXPECT_TRUE(Fits(record, PartitionAssigned{kPartition, Placement(1), kWorker}));
  EXPECT_FALSE(Fits(record, ReaderGone{kAnna, ReaderStatus::kExpired}));
  EXPECT_FALSE(Fits(record, IterationReopened{}));
}

TEST(Readers, AreFoundHoweverManyJoined) {
  IterationRecord record;
  for (uint64_t client = 1; client <= 100; ++client) {
    ASSERT_FALSE(Fits(record, ReaderGone{ClientId(client), ReaderStatus::kExpired}));
    Apply(record, ReaderJoined{ClientId(client), Incarnation(client)});
    const IterationRecord copy = record;
    for (uint64_t before = 1; before <= client; ++before)
      ASSERT_EQ(copy.FindReader(ClientId(before)), before - 1);
    ASSERT_EQ(copy.FindReader(ClientId(client + 1)), std::nullopt);
    ASSERT_EQ(copy, record);
  }
}

// --- Data that follow from the record ------------------------------------------------

// Readers join, commit, and return with states that contain more, or, as no coordinator allows,
// less.
void ChangeReaders(IterationRecord& record, std::mt19937_64& random) {
  const auto draw = [&](uint64_t below) { return random() % below; };
  const uint64_t readers = record.readers.size();
  if (readers == 0 || draw(20) == 0)
    return Apply(record, ReaderJoined{ClientId(readers + 1), Incarnation(1)});
  const ReaderRecord& reader = record.readers[draw(readers)];
  if (draw(5) == 0) {
    ReaderReplaced replaced{reader.client, Incarnation(2), reader.committed};
    if (draw(3) == 0) {
      replaced.committed.clear();
      const uint64_t kept = draw(4);
      for (const auto& [partition, set] : reader.committed)
        if (partition.value() <= kept) replaced.committed.Add(partition, set);
    }
    if (draw(2) == 0) {
      const auto index = static_cast<Index>(draw(50));
      replaced.committed.Add(PartitionId(2), IndexSet::Of(index, index + 1));
    }
    return Apply(record, replaced);
  }
  const auto begin = static_cast<Index>(draw(50));
  const Index end = begin + 1 + static_cast<Index>(draw(5));
  Apply(record, ReaderCommitted{reader.client, PartitionId(1 + draw(3)), IndexSet::Of(begin, end)});
}

TEST(IterationRecord, KeepsTheElementsThatAnyReaderHasCommitted) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    IterationRecord record;
    for (uint64_t p = 1; p <= 3; ++p) Apply(record, PartitionOpened{PartitionId(p)});
    for (int step = 0; step < 200; ++step) {
      ChangeReaders(record, random);
      for (uint64_t p = 1; p <= 3; ++p) {
        IndexSet committed;
        for (const ReaderRecord& reader : record.readers)
          committed.Add(Of(reader.committed, PartitionId(p)));
        ASSERT_EQ(CommittedIndices(record, PartitionId(p)), committed) << "step " << step;
        ASSERT_EQ(FirstUncommitted(record, PartitionId(p)), committed.FirstMissing());
      }
      ASSERT_EQ(record.committed_by_any.sets, ComputeCommitted(record).sets);
    }
  }
}

}  // namespace
}  // namespace penstock::protocol
