// SPDX-License-Identifier: Apache-2.0
// What the desk decides, one behaviour each; how the behaviours go together is
// explored in explore_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "control/protocol/iteration_desk.h"
#include "control/protocol/receiver.h"
#include "control/protocol/sender.h"

namespace penstock::protocol {
namespace {

constexpr ClientId kAnna{1};
constexpr ClientId kBert{2};
constexpr Incarnation kFirst{1};
constexpr Incarnation kSecond{2};
constexpr WorkerId kWorker{7};
constexpr WorkerId kOther{8};
constexpr PartitionId kPartition{1};

// A record and its desk, as a dispatcher keeps them; collects what is said.
class Office {
 public:
  explicit Office(KeepPolicy keep = KeepPolicy::kTaken) {
    record.keep = keep;
    desk = OpenDesk(record);
    Do(OpenPartition(record, desk));
  }
  void Do(Decision decision) {
    do {
      for (const IterationChange& change : decision.changes) {
        ASSERT_TRUE(Fits(record, change));
        Apply(record, change);
      }
      for (Message& message : decision.messages) said.push_back(std::move(message));
      decision = Consequences(record, desk);
    } while (!decision.empty());
  }
  void Joins(ClientId client) { Do(OnPresents(record, desk, {client, kFirst, std::nullopt})); }
  void Restarts(ClientId client, Holdings state) {
    Do(OnPresents(record, desk, {client, kSecond, std::move(state)}));
  }
  void Reports(ClientId client, Placement g, IndexSet taken, IndexSet landed = {}) {
    Do(OnReport(record, desk, client, kFirst, {kPartition, g, taken, landed}));
  }
  void Gives(ClientId client, Placement g, IndexSet returned) {
    Do(OnReport(record, desk, client, kFirst,
                {.partition = kPartition, .placement = g, .returned = std::move(returned)}));
  }
  void Waits(ClientId client) {
    OnWaits(record, desk, client, kFirst);
    Do({});
  }
  void Dies(ClientId client) { Do(OnReaderDead(record, desk, client)); }
  void Commits(ClientId client, Holdings kept) {
    Do(OnCommit(record, desk, client, kFirst, {1, std::move(kept)}));
  }
  void Assign(WorkerId worker = kWorker) { Do(AssignTo(record, desk, kPartition, worker)); }
  void Ends(Index end) {
    Do(OnEnded(record, desk, kWorker, kPartition, record.partition(kPartition).placement, end));
  }
  // The messages of one kind, taken out.
  template <class M>
  std::vector<M> Said() {
    std::vector<M> some;
    std::erase_if(said, [&](const Message& message) {
      const M* m = std::get_if<M>(&message);
      if (m) some.push_back(*m);
      return m != nullptr;
    });
    return some;
  }

  IterationRecord record;
  Desk desk;
  std::vector<Message> said;
};

IndexSet Range(Index begin, Index end) {
  return IndexSet::Of(begin, end);
}

TEST(Desk, AssignsANewPartitionWithoutAFence) {
  Office office;
  EXPECT_TRUE(Assignable(office.record, office.desk).empty());  // nobody reads
  office.Joins(kAnna);
  EXPECT_THAT(Assignable(office.record, office.desk), testing::ElementsAre(kPartition));
  office.Assign();
  const auto assigned = office.Said<struct Assign>();
  ASSERT_EQ(assigned.size(), 1u);
  EXPECT_TRUE(assigned[0].skip.empty());
  EXPECT_THAT(assigned[0].readers, testing::ElementsAre(Reader{kAnna, kFirst}));
  EXPECT_TRUE(office.Said<Fence>().empty());
}

TEST(Desk, WaitsForEveryAnswerBeforeItAssignsAgain) {
  Office office;
  office.Joins(kAnna);
  office.Joins(kBert);
  office.Assign();
  office.Do(OnWorkerGone(office.record, office.desk, kWorker));
  EXPECT_EQ(office.Said<Fence>().size(), 2u);
  office.Reports(kAnna, Placement(2), Range(0, 2), Range(4, 5));
  EXPECT_TRUE(Assignable(office.record, office.desk).empty());
  office.Reports(kBert, Placement(1), Range(2, 3));  // said before the fence reached it
  EXPECT_TRUE(Assignable(office.record, office.desk).empty());
  office.Reports(kBert, Placement(2), Range(3, 4));
  office.Said<struct Assign>();
  office.Assign(kOther);
  EXPECT_EQ(office.Said<struct Assign>()[0].skip, Range(0, 5));
}

TEST(Desk, WaitsNoLongerForAClientThatIsDead) {
  Office office;
  office.Joins(kAnna);
  office.Joins(kBert);
  office.Assign();
  office.Reports(kBert, Placement(1), Range(0, 1), Range(1, 2));
  office.Do(OnRelieve(office.record, office.desk, kPartition));
  office.Reports(kAnna, Placement(2), {});
  office.Do(OnReaderDead(office.record, office.desk, kBert));
  office.Said<struct Assign>();
  office.Assign();
  EXPECT_EQ(office.Said<struct Assign>()[0].skip, Range(0, 1))
      << "what it took, not what it landed";
}

TEST(Desk, OwesNothingToReadersOfAWindowAndWaitsForNone) {
  Office office(KeepPolicy::kNothing);
  office.Joins(kAnna);
  office.Joins(kBert);
  office.Assign();
  office.Do(OnBookmark(office.record, office.desk, kWorker, kPartition, Placement(1), {7, "x"}));
  office.Do(OnReaderDead(office.record, office.desk, kBert));
  EXPECT_EQ(office.record.partition(kPartition).placement, Placement(1)) << "nothing moves";
  office.Do(OnWorkerGone(office.record, office.desk, kWorker));
  EXPECT_THAT(Assignable(office.record, office.desk), testing::ElementsAre(kPartition));
  office.Said<struct Assign>();
  office.Assign(kOther);
  const auto assigned = office.Said<struct Assign>();
  ASSERT_EQ(assigned.size(), 1u);
  EXPECT_EQ(assigned[0].bookmark->index, 7);
  EXPECT_TRUE(assigned[0].skip.empty());
}

TEST(Desk, AddsAClientThatJoinsToThoseServed) {
  Office office;
  office.Joins(kAnna);
  office.Assign();
  office.Joins(kBert);
  const auto added = office.Said<AddReader>();
  ASSERT_EQ(added.size(), 1u);
  EXPECT_EQ(added[0].reader, (Reader{kBert, kFirst}));
  EXPECT_EQ(office.record.partition(kPartition).placement, Placement(1)) << "nothing moves";
}

TEST(Desk, ClosesWhenAllIsTakenAndTellsTheEnd) {
  Office office;
  office.Joins(kAnna);
  office.Assign();
  office.Ends(3);
  office.Reports(kAnna, Placement(1), Range(0, 2), Range(2, 3));
  EXPECT_FALSE(office.record.closed) << "one has landed and is not taken";
  office.Reports(kAnna, Placement(1), Range(2, 3));
  EXPECT_TRUE(office.record.closed);
  EXPECT_EQ(office.Said<End>().size(), 1u);
  EXPECT_TRUE(office.record.finished);
}

TEST(Desk, AsksForWhatOneHoldsAndAnotherWaitsFor) {
  Office office;
  office.Joins(kAnna);
  office.Joins(kBert);
  office.Assign();
  office.Reports(kAnna, Placement(1), Range(0, 1), Range(1, 3));
  office.Reports(kBert, Placement(1), {});
  office.Waits(kBert);
  EXPECT_THAT(office.Said<Fence>(), testing::IsEmpty()) << "more may be sent to him";
  office.Ends(3);
  const auto fences = office.Said<Fence>();
  ASSERT_EQ(fences.size(), 2u);
  EXPECT_TRUE(fences[0].give_back);
  office.Gives(kAnna, Placement(2), Range(1, 3));
  office.Reports(kBert, Placement(2), {});
  office.Assign();
  EXPECT_EQ(office.Said<struct Assign>().back().skip, Range(0, 1));
  office.Ends(3);
  EXPECT_THAT(office.Said<Fence>(), testing::IsEmpty()) << "he has not said again that he waits";
}

TEST(Desk, WhatADeadReaderHadNotCommittedIsForWhoeverComesLate) {
  Office office(KeepPolicy::kCommitted);
  office.Joins(kAnna);
  office.Assign();
  office.Ends(2);
  office.Reports(kAnna, Placement(1), Range(0, 2));
  ASSERT_TRUE(office.record.closed);
  office.Dies(kAnna);
  office.Joins(kBert);
  EXPECT_FALSE(office.record.closed);
  EXPECT_EQ(office.Said<End>().size(), 1u) << "hers alone";
  office.Assign();
  EXPECT_EQ(office.Said<struct Assign>().back().skip, IndexSet());
}

TEST(Desk, TellsALateReaderTheEndAtOnce) {
  Office office;
  office.Joins(kAnna);
  office.Assign();
  office.Ends(0);
  office.Said<End>();
  office.Joins(kBert);
  EXPECT_EQ(office.Said<Welcome>().size(), 2u);
  EXPECT_EQ(office.Said<End>().size(), 1u);
}

TEST(Desk, KeepsWhatAReaderTookThatLeaves) {
  Office office;
  office.Joins(kAnna);
  office.Joins(kBert);
  office.Assign();
  office.Do(OnLeave(office.record, office.desk, kAnna, kFirst, {{Range(0, 4)}}));
  EXPECT_EQ(office.Said<LeaveDone>().size(), 1u);
  EXPECT_EQ(Kept(office.record, kPartition), Range(0, 4));
  EXPECT_EQ(office.record.partition(kPartition).placement, Placement(2));
}

// What told it so was lost with its stream, or with the dispatcher's process.
TEST(Desk, TellsWhoHasLeftSoAgain) {
  Office office;
  office.Joins(kAnna);
  office.Assign();
  office.Do(OnLeave(office.record, office.desk, kAnna, kFirst, {{Range(0, 3)}}));
  ASSERT_EQ(office.Said<LeaveDone>().size(), 1u);
  const IterationRecord left = office.record;

  office.Joins(kAnna);
  EXPECT_THAT(office.Said<Refused>(), ::testing::IsEmpty());
  EXPECT_EQ(office.Said<Welcome>().size(), 2u);
  EXPECT_EQ(office.Said<LeaveDone>().size(), 1u);
  EXPECT_EQ(office.record, left);
}

TEST(Desk, WaitsForNoAnswerOfOneThatLeftWithMoreThanIsKept) {
  Office office(KeepPolicy::kCommitted);
  office.Joins(kAnna);
  office.Joins(kBert);
  office.Assign();
  office.Reports(kAnna, Placement(1), Range(0, 2), Range(2, 3));
  office.Commits(kAnna, {Range(0, 1)});
  office.Do(OnLeave(office.record, office.desk, kAnna, kFirst, {{Range(0, 2)}}));
  EXPECT_EQ(office.Said<LeaveDone>().size(), 1u);
  EXPECT_EQ(Kept(office.record, kPartition), Range(0, 1));
  office.Reports(kBert, Placement(2), {});
  office.Said<struct Assign>();
  office.Assign();
  const auto assigned = office.Said<struct Assign>();
  EXPECT_EQ(assigned[0].skip, Range(0, 2)) << "what it took, not what it landed";
  EXPECT_THAT(assigned[0].readers, testing::ElementsAre(Reader{kBert, kFirst}));
  office.Ends(3);
  office.Reports(kBert, Placement(2), Range(2, 3));
  EXPECT_FALSE(office.record.closed) << "what it took may yet be Bert's";
  office.Do(OnReaderDead(office.record, office.desk, kAnna));
  office.Reports(kBert, Placement(3), {});
  office.Assign();
  IndexSet left = Range(0, 1);
  left.Add(2);
  EXPECT_EQ(office.Said<struct Assign>()[0].skip, left);
}

TEST(Desk, TakesUpTheStateOfOneThatLeft) {
  Office office(KeepPolicy::kCommitted);
  office.Joins(kAnna);
  office.Joins(kBert);
  office.Assign();
  office.Do(OnLeave(office.record, office.desk, kAnna, kFirst, {{Range(0, 3)}}));
  office.Restarts(kAnna, {Range(0, 2)});
  EXPECT_TRUE(office.Said<Refused>().empty());
  office.Reports(kBert, Placement(2), {});
  office.Assign();
  const auto assigned = office.Said<struct Assign>();
  EXPECT_EQ(assigned.back().skip, Range(0, 2));
  EXPECT_THAT(assigned.back().readers,
              testing::ElementsAre(Reader{kAnna, kSecond}, Reader{kBert, kFirst}));
}

TEST(Desk, AnswersACommitThatIsRepeatedWithoutJournalingItTwice) {
  Office office(KeepPolicy::kCommitted);
  office.Joins(kAnna);
  office.Commits(kAnna, {Range(0, 2)});
  const Decision again = OnCommit(office.record, office.desk, kAnna, kFirst, {1, {Range(0, 2)}});
  EXPECT_TRUE(again.changes.empty());
  EXPECT_EQ(again.messages.size(), 1u);
}

TEST(Desk, TakesUpASessionFromItsStateAndMovesEverything) {
  Office office(KeepPolicy::kCommitted);
  office.Joins(kAnna);
  office.Joins(kBert);
  office.Assign();
  office.Commits(kAnna, {Range(0, 1)});
  office.Restarts(kAnna, {Range(0, 2)});
  EXPECT_EQ(Of(office.record.readers[0].kept, kPartition), Range(0, 2));
  EXPECT_EQ(office.record.partition(kPartition).placement, Placement(2));
  office.Restarts(kAnna, {Range(0, 2)});
  EXPECT_EQ(office.record.partition(kPartition).placement, Placement(2)) << "welcomed again only";
}

TEST(Desk, RefusesAStateThatIsNotTheCommittedOneOfTheDead) {
  Office office(KeepPolicy::kCommitted);
  office.Joins(kAnna);
  office.Joins(kBert);
  office.Commits(kAnna, {Range(0, 2)});
  office.Do(OnReaderDead(office.record, office.desk, kAnna));
  office.Said<Refused>();
  office.Restarts(kAnna, {Range(0, 3)});
  office.Restarts(kAnna, {Range(0, 1)});
  office.Do(OnPresents(office.record, office.desk, {kAnna, kFirst, std::nullopt}));
  const auto refused = office.Said<Refused>();
  ASSERT_EQ(refused.size(), 3u);
  EXPECT_EQ(refused[0].why, Refusal::kStateIsNewer);
  EXPECT_EQ(refused[1].why, Refusal::kStateIsOlder);
  EXPECT_EQ(refused[2].why, Refusal::kDeclaredDead);
  office.Restarts(kAnna, {Range(0, 2)});
  EXPECT_EQ(office.record.readers[0].standing, Standing::kLiving);
}

// Where the sets are gone their marks tell.
TEST(Desk, RefusesAStateThatIsNotWhatWasKeptOfAFinishedIteration) {
  for (const bool forgets : {false, true}) {
    Office office(KeepPolicy::kCommitted);
    office.Joins(kAnna);
    office.Assign();
    office.Reports(kAnna, Placement(1), Range(0, 4));
    office.Ends(4);
    office.Commits(kAnna, {Range(0, 4)});
    ASSERT_TRUE(office.record.finished);
    if (forgets) ForgetHistories(office.record);
    office.Said<Refused>();
    office.Said<End>();
    office.Restarts(kAnna, {Range(0, 4)});
    EXPECT_EQ(office.Said<End>().size(), 1u);
    office.Restarts(kAnna, {Range(0, 3)});
    office.Restarts(kAnna, {Range(0, 5)});
    office.Restarts(kAnna, {Range(1, 5)});
    const auto refused = office.Said<Refused>();
    ASSERT_EQ(refused.size(), 3u);
    EXPECT_EQ(refused[0].why, Refusal::kStateIsOlder);
    EXPECT_EQ(refused[1].why, Refusal::kFinished);
    EXPECT_TRUE(office.Said<End>().empty());
  }
}

TEST(Desk, AsksAgainUnderTheSamePlacementAfterARestart) {
  Office office;
  office.Joins(kAnna);
  office.Assign();
  office.Do(OnWorkerGone(office.record, office.desk, kWorker));
  office.desk = OpenDesk(office.record);
  office.said.clear();
  office.Joins(kAnna);
  const auto fences = office.Said<Fence>();
  ASSERT_EQ(fences.size(), 1u);
  EXPECT_EQ(fences[0].placement, Placement(2));
}

TEST(Desk, PlacesAnewWhatAWorkerNeverGot) {
  Office office;
  office.Joins(kAnna);
  office.Assign();
  const Held held[] = {{kPartition, Placement(1)}};
  office.Do(OnWorkerRegisters(office.record, office.desk, kWorker, held));
  EXPECT_EQ(office.record.partition(kPartition).placement, Placement(1));
  office.Do(OnWorkerRegisters(office.record, office.desk, kWorker, {}));
  EXPECT_EQ(office.record.partition(kPartition).placement, Placement(2));
  office.Do(OnWorkerRegisters(office.record, office.desk, kOther, held));
  EXPECT_EQ(office.Said<Unassign>().back().worker, kOther);
}

TEST(Desk, ReplaysFromTheNewestBookmarkBelowWhatIsMissing) {
  Office office;
  office.Joins(kAnna);
  office.Assign();
  for (Index i : {2, 4, 6})
    office.Do(OnBookmark(office.record, office.desk, kWorker, kPartition, Placement(1), {i, "b"}));
  office.Reports(kAnna, Placement(1), Range(0, 5), Range(6, 8));
  office.Do(OnWorkerGone(office.record, office.desk, kWorker));
  office.Reports(kAnna, Placement(2), {});
  office.Said<struct Assign>();
  office.Assign();
  EXPECT_EQ(office.Said<struct Assign>()[0].bookmark->index, 4);
}

TEST(Desk, KeepsABookmarkBelowWhatIsKeptHoweverManyCome) {
  Office office;
  office.Joins(kAnna);
  office.Assign();
  for (Index i = 1; i <= 200; ++i) {
    if (i % 20 == 0) office.Reports(kAnna, Placement(1), Range(i - 20, i - 10));
    office.Do(OnBookmark(office.record, office.desk, kWorker, kPartition, Placement(1), {i, "b"}));
    const auto& bookmarks = office.record.partition(kPartition).bookmarks;
    ASSERT_LE(bookmarks.size(), 16u);
    ASSERT_EQ(bookmarks.back().index, i);
    ASSERT_LE(bookmarks.front().index,
              std::max<Index>(1, Kept(office.record, kPartition).FirstMissing()));
  }
}

TEST(Desk, IgnoresWhatComesFromAnOlderPlacement) {
  Office office;
  office.Joins(kAnna);
  office.Assign();
  office.Do(OnRelieve(office.record, office.desk, kPartition));
  office.Reports(kAnna, Placement(2), {});
  office.Assign();
  const IterationRecord before = office.record;
  office.Do(OnEnded(office.record, office.desk, kWorker, kPartition, Placement(1), 0));
  office.Do(OnBookmark(office.record, office.desk, kWorker, kPartition, Placement(1), {1, ""}));
  EXPECT_EQ(office.record, before);
}

TEST(Sender, OffersWhatIsInDoubtToNobodyUntilTheClientSpoke) {
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

TEST(Sender, WhatALinkRefusedIsForAnyone) {
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

TEST(Sender, WhatALinkRefusedAfterItBrokeIsForAnyone) {
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

TEST(Receiver, DropsWhatIsOlderThanTheFenceAndSaysWhatItHas) {
  Receiver receiver(kPartition);
  EXPECT_EQ(receiver.OnElement(Placement(1), 0), Landing::kAccepted);
  EXPECT_EQ(receiver.OnElement(Placement(1), 1), Landing::kAccepted);
  receiver.OnTaken(0);
  const Report answer = receiver.OnFence(Placement(2));
  EXPECT_EQ(answer.taken, Range(0, 1));
  EXPECT_EQ(answer.landed, Range(1, 2));
  EXPECT_EQ(receiver.OnElement(Placement(1), 2), Landing::kOldPlacement);
  EXPECT_EQ(receiver.OnElement(Placement(2), 1), Landing::kAlreadyHere);
  EXPECT_FALSE(receiver.News().has_value());
  receiver.OnPresented();
  EXPECT_EQ(receiver.News()->taken, Range(0, 1)) << "all again on a new stream";
}

TEST(Receiver, OnlyTheFirstReportOnAStreamIsWhole) {
  Receiver receiver(kPartition);
  receiver.OnElement(Placement(1), 0);
  EXPECT_FALSE(receiver.LandedNews()->whole);
  receiver.OnElement(Placement(1), 1);
  EXPECT_FALSE(receiver.News()->whole) << "it does not name what was said before";
  receiver.OnPresented();
  const std::optional<Report> first = receiver.LandedNews();
  EXPECT_TRUE(first->whole);
  EXPECT_EQ(first->landed, Range(0, 2));
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
  EXPECT_FALSE(Fits(record, ReaderGone{kAnna, Standing::kDead}));
  EXPECT_FALSE(Fits(record, IterationReopened{}));
}

TEST(Readers, AreFoundHoweverManyJoined) {
  IterationRecord record;
  for (uint64_t client = 1; client <= 100; ++client) {
    ASSERT_FALSE(Fits(record, ReaderGone{ClientId(client), Standing::kDead}));
    Apply(record, ReaderJoined{ClientId(client), Incarnation(client)});
    const IterationRecord copy = record;
    for (uint64_t before = 1; before <= client; ++before)
      ASSERT_EQ(copy.FindReader(ClientId(before)), before - 1);
    ASSERT_EQ(copy.FindReader(ClientId(client + 1)), std::nullopt);
    ASSERT_EQ(copy, record);
  }
}

}  // namespace
}  // namespace penstock::protocol
