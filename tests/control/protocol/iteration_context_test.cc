// SPDX-License-Identifier: Apache-2.0
// The answers and elements of readers that follow without an entry for each partition and reader.
#include "control/protocol/coordinator/iteration_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "control/protocol/coordinator/iteration_coordinator.h"

namespace penstock::protocol {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Incarnation kProcess{1};

WorkerId WorkerOf(size_t partition) {
  return WorkerId(1000 + partition);
}

// An iteration whose partitions have a worker each. Partitions and readers are named by positions.
class IterationContextTest : public testing::Test {
 protected:
  void Do(Decision decision) {
    do {
      for (const IterationChange& change : decision.changes) {
        ASSERT_TRUE(Fits(record_, change));
        Apply(record_, change);
      }
      for (Message& message : decision.messages) sent_.push_back(std::move(message));
      decision = Consequences(record_, context_);
    } while (!decision.empty());
    EXPECT_TRUE(IsKept(record_));
    EXPECT_TRUE(context_.IsKept(record_));
  }
  static ClientId ClientOf(size_t reader) { return ClientId(reader + 1); }
  void Open(size_t partitions) {
    while (record_.partitions.size() < partitions) Do(OpenPartition(record_, context_));
  }
  void Connects(size_t reader, bool reports_all = false) {
    Do(OnConnect(
        record_, context_,
        {.client = ClientOf(reader), .incarnation = kProcess, .reports_all = reports_all}));
  }
  void Assign(size_t partition, IndexSet audience) {
    Do(AssignTo(record_, context_, PartitionId(partition + 1), WorkerOf(partition),
                std::move(audience)));
  }
  void Extend(size_t partition, size_t reader) {
    Do(ExtendAudience(record_, context_, PartitionId(partition + 1),
                      IndexSet::Of(PositionOf(reader), PositionOf(reader) + 1)));
  }
  void Moves(size_t partition) { Do(OnRelieve(record_, context_, PartitionId(partition + 1))); }
  // `below`: it has received the elements below this index.
  void Reports(size_t partition, size_t reader, Placement lowest, Index below = 0) {
    Do(OnReport(record_, context_, ClientOf(reader), kProcess,
                {.partition = PartitionId(partition + 1),
                 .placement = lowest,
                 .received = IndexSet::Of(0, below),
                 .whole = true}));
  }
  void Completes(size_t reader) {
    Do(OnReportsComplete(record_, context_, ClientOf(reader), kProcess));
  }
  void Restart() {
    context_ = MakeIterationContext(record_);
    Do(OnDispatcherStarts(record_, context_));
  }
  bool HasAnswered(size_t partition, size_t reader) const {
    return context_.HasAnswered(partition, reader, record_.partitions[partition].placement);
  }
  size_t Entries() const {
    size_t entries = 0;
    for (const PartitionContext& partition : context_.partitions) entries += partition.acks.size();
    return entries;
  }
  // Removes and returns the messages of one kind.
  template <class M>
  std::vector<M> Sent() {
    std::vector<M> some;
    std::erase_if(sent_, [&](const Message& message) {
      const M* m = std::get_if<M>(&message);
      if (m) some.push_back(*m);
      return m != nullptr;
    });
    return some;
  }
  std::vector<uint64_t> NamedInWelcome() {
    std::vector<uint64_t> named;
    for (const Welcome& welcome : Sent<Welcome>())
      for (const Placed& placed : welcome.placements) named.push_back(placed.partition.value());
    return named;
  }

  IterationRecord record_;
  IterationContext context_ = MakeIterationContext(record_);
  std::vector<Message> sent_;
};

TEST_F(IterationContextTest, AReaderHasAnsweredForThePlacementsBeforeIt) {
  Open(2);
  Connects(0);
  EXPECT_TRUE(HasAnswered(0, 0));
  Assign(0, IndexSet::Of(0, 1));
  Moves(0);
  EXPECT_FALSE(HasAnswered(0, 0));
  EXPECT_TRUE(context_.Knows(0, 0));
  EXPECT_TRUE(HasAnswered(1, 0)) << "the other partition did not move";
  Connects(1);
  EXPECT_TRUE(HasAnswered(0, 1)) << "it joined after the move";
  EXPECT_EQ(Entries(), 0u);
  Reports(0, 0, Placement(2));
  EXPECT_TRUE(HasAnswered(0, 0));
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(IterationContextTest, AProcessThatTakesUpASessionHasAnswered) {
  record_.commit_policy = CommitPolicy::kExplicit;
  Open(1);
  Connects(0);
  Assign(0, IndexSet::Of(0, 1));
  Reports(0, 0, Placement(1), 3);
  EXPECT_EQ(Entries(), 1u);
  Do(OnConnect(record_, context_,
               {.client = ClientOf(0), .incarnation = Incarnation(2), .state = ReceivedSets{}}));
  EXPECT_EQ(record_.partitions[0].placement, Placement(2));
  EXPECT_TRUE(HasAnswered(0, 0)) << "its Welcome has the new placement";
  EXPECT_EQ(Entries(), 0u) << "the elements of its earlier process are nobody's";
}

TEST_F(IterationContextTest, ADispatcherThatStartsKnowsNothing) {
  Open(3);
  Connects(0);
  Connects(1);
  for (size_t p = 0; p < 3; ++p) Assign(p, IndexSet::Of(0, 1));
  Restart();
  for (size_t p = 0; p < 3; ++p) {
    EXPECT_FALSE(HasAnswered(p, 0));
    EXPECT_FALSE(context_.Knows(p, 1));
  }
  EXPECT_THAT(context_.unknown, ElementsAre(0, 1));
  Connects(1);
  Reports(0, 1, Placement(1));
  EXPECT_TRUE(context_.Knows(0, 1));
  EXPECT_FALSE(context_.Knows(1, 1));
  Open(4);
  EXPECT_TRUE(context_.Knows(3, 1)) << "nobody can have elements of a new partition";
  EXPECT_TRUE(HasAnswered(3, 1));
}

// A client that reports partition by partition, and does not say when it has reported all.
TEST_F(IterationContextTest, AReaderIsKnownOnceItHasReportedEachPartition) {
  Open(3);
  Connects(0);
  Connects(1);
  for (size_t p = 0; p < 3; ++p) Assign(p, IndexSet::Of(0, 1));
  Restart();
  Connects(1);
  for (size_t p = 0; p < 3; ++p) {
    EXPECT_THAT(context_.unknown, ElementsAre(0, 1));
    Reports(p, 1, Placement(1));
  }
  EXPECT_THAT(context_.unknown, ElementsAre(0));
  EXPECT_EQ(Entries(), 0u) << "no partition serves it, and it has nothing";
}

TEST_F(IterationContextTest, AnAddedReaderIsFencedUnlessItJoinedAfterTheMove) {
  Open(1);
  Connects(0);
  Connects(1);
  Assign(0, IndexSet::Of(0, 1));
  Moves(0);
  Reports(0, 0, Placement(2));
  Assign(0, IndexSet::Of(0, 1));
  Connects(2);
  Sent<ToClient<Fence>>();
  Extend(0, 2);
  EXPECT_THAT(Sent<ToClient<Fence>>(), IsEmpty());
  EXPECT_THAT(Sent<AddReader>(),
              ElementsAre(testing::Field(&AddReader::reader, Reader{ClientOf(2), kProcess})));
  Extend(0, 1);
  EXPECT_THAT(Sent<ToClient<Fence>>(), SizeIs(1));
  EXPECT_THAT(Sent<AddReader>(), IsEmpty());
  Reports(0, 1, Placement(2));
  EXPECT_THAT(Sent<AddReader>(), SizeIs(1));
}

TEST_F(IterationContextTest, ElementsOfAReaderThatIsNotServedStayInSkip) {
  Open(1);
  Connects(0);
  Connects(1);
  Assign(0, IndexSet::Of(0, 2));
  Reports(0, 1, Placement(1), 4);
  Moves(0);
  Reports(0, 0, Placement(2));
  Do(OnReport(record_, context_, ClientOf(1), kProcess,
              {.partition = PartitionId(1), .placement = Placement(2)}));
  Assign(0, IndexSet::Of(0, 1));
  Moves(0);
  Reports(0, 0, Placement(3));
  Sent<struct Assign>();
  Assign(0, IndexSet::Of(0, 1));
  EXPECT_EQ(Sent<struct Assign>().at(0).skip, IndexSet::Of(0, 4));
}

// --- Rule 33 -------------------------------------------------------------------------

// A client that leaves may have delivered elements after its last report. Later they belong to
// nobody: it dies, or a process takes its session up from an older state.
TEST_F(IterationContextTest, ElementsThatOnlyALeaveNamedAreSentAgain) {
  for (const bool dies : {true, false}) {
    record_ = {};
    record_.commit_policy = CommitPolicy::kExplicit;
    context_ = MakeIterationContext(record_);
    Connects(0);
    Connects(1);
    Open(1);
    Assign(0, IndexSet::Of(0, 2));
    Do(OnLeave(record_, context_, ClientOf(0), kProcess, {{IndexSet::Of(0, 3)}}));
    Reports(0, 1, Placement(2));
    Assign(0, IndexSet::Of(1, 2));
    ASSERT_FALSE(record_.partitions[0].collecting());
    if (dies) {
      Do(OnReaderExpired(record_, context_, ClientOf(0)));
    } else {
      Do(OnConnect(
          record_, context_,
          {.client = ClientOf(0), .incarnation = Incarnation(2), .state = ReceivedSets()}));
    }
    EXPECT_TRUE(record_.partitions[0].collecting());
    Reports(0, 1, Placement(3));
    sent_.clear();
    Assign(0, IndexSet::Of(1, 2));
    const auto* assigned = std::get_if<struct Assign>(&sent_.back());
    ASSERT_NE(assigned, nullptr);
    EXPECT_TRUE(assigned->skip.empty());
  }
}

TEST_F(IterationContextTest, AWelcomeNamesThePartitionsThatMaySendOrAsk) {
  Open(3);
  Connects(0);
  Assign(0, IndexSet::Of(0, 1));
  Assign(1, IndexSet::Of(0, 1));
  Sent<Welcome>();
  Connects(1, /*reports_all=*/true);
  EXPECT_THAT(NamedInWelcome(), ElementsAre(3)) << "it may serve all readers";
  Extend(1, 1);
  Connects(1, /*reports_all=*/true);
  EXPECT_THAT(NamedInWelcome(), ElementsAre(2, 3));
  Restart();
  Do(OnWorkerGone(record_, context_, WorkerOf(0)));
  Connects(1, /*reports_all=*/true);
  EXPECT_THAT(NamedInWelcome(), ElementsAre(1, 2, 3)) << "the first asks all readers";
  Connects(1);
  EXPECT_THAT(NamedInWelcome(), ElementsAre(1, 2, 3));
}

TEST_F(IterationContextTest, ACompleteReaderIsKnownWithoutAnEntry) {
  Open(3);
  Connects(0);
  Connects(1);
  for (size_t p = 0; p < 3; ++p) Assign(p, IndexSet::Of(0, 1));
  Restart();
  Connects(0);
  for (size_t p = 0; p < 3; ++p) Reports(p, 0, Placement(1));
  Connects(1, /*reports_all=*/true);
  Reports(1, 1, Placement(1), 2);
  Completes(1);
  EXPECT_THAT(context_.unknown, IsEmpty());
  EXPECT_TRUE(context_.Knows(2, 1));
  EXPECT_FALSE(HasAnswered(2, 1));
  EXPECT_EQ(context_.partitions[1].acks.Of(1).reported, IndexSet::Of(0, 2));
  EXPECT_EQ(Entries(), 4u) << "the answers of the first reader, and two elements of the second";
}

TEST_F(IterationContextTest, CompletingCountsForWhatWaitsForReports) {
  Open(1);
  Connects(0);
  Connects(1);
  Assign(0, IndexSet::Of(0, 1));
  Restart();
  Connects(0);
  Connects(1, /*reports_all=*/true);
  Moves(0);
  Reports(0, 0, Placement(2));
  EXPECT_THAT(Assignable(record_, context_), IsEmpty()) << "the first raise asks all readers";
  Completes(1);
  EXPECT_THAT(Assignable(record_, context_), IsEmpty()) << "it has not answered";
  Reports(0, 1, Placement(2));
  EXPECT_THAT(Assignable(record_, context_), SizeIs(1));
}

TEST_F(IterationContextTest, ElementsThatAreNotReportedAgainAreGone) {
  Open(2);
  Connects(0, /*reports_all=*/true);
  Reports(0, 0, Placement(1), 2);
  Reports(1, 0, Placement(1), 3);
  Connects(0, /*reports_all=*/true);
  Reports(1, 0, Placement(1), 4);
  EXPECT_EQ(context_.partitions[0].acks.Of(0).reported, IndexSet::Of(0, 2));
  Completes(0);
  EXPECT_TRUE(context_.partitions[0].acks.Of(0).reported.empty());
  EXPECT_EQ(context_.partitions[1].acks.Of(0).reported, IndexSet::Of(0, 4));
  Reports(0, 0, Placement(1), 1);
  Completes(0);
  EXPECT_EQ(context_.partitions[0].acks.Of(0).reported, IndexSet::Of(0, 1)) << "once per stream";
}

TEST_F(IterationContextTest, IsNotKeptIfASetLacksAPosition) {
  record_.commit_policy = CommitPolicy::kExplicit;
  Open(1);
  Connects(0);
  const auto is_kept_without = [&](auto&& forget) {
    IterationContext lacks = context_;
    forget(lacks);
    return lacks.IsKept(record_);
  };
  EXPECT_FALSE(is_kept_without([](IterationContext& lacks) { lacks.collecting.clear(); }));
  Assign(0, IndexSet::Of(0, 1));
  EXPECT_TRUE(is_kept_without([](IterationContext& lacks) { lacks.collecting.clear(); }));
  Do(OnReport(
      record_, context_, ClientOf(0), kProcess,
      {.partition = PartitionId(1), .placement = Placement(1), .delivered = IndexSet::Of(0, 2)}));
  Do(OnEnded(record_, context_, WorkerOf(0), PartitionId(1), Placement(1), 2));
  ASSERT_TRUE(record_.closed);
  EXPECT_FALSE(is_kept_without([](IterationContext& lacks) { lacks.owed.clear(); }));
  EXPECT_FALSE(is_kept_without([](IterationContext& lacks) { lacks.ended.clear(); }));
  Restart();
  EXPECT_TRUE(context_.IsKept(record_));
}

// --- What grows ----------------------------------------------------------------------

TEST_F(IterationContextTest, EntriesGrowWithTheLinks) {
  constexpr size_t kPartitions = 400;
  constexpr size_t kReaders = 100;
  constexpr size_t kLinks = 8;  // of each partition
  const auto audience = [](size_t p) {
    IndexSet readers;
    for (size_t i = 0; i < kLinks; ++i) readers.Add(PositionOf((p * 7 + i * 11) % kReaders));
    return readers;
  };
  Open(kPartitions);
  for (size_t r = 0; r < kReaders; ++r) Connects(r);
  for (size_t p = 0; p < kPartitions; ++p) Assign(p, audience(p));
  EXPECT_EQ(Entries(), 0u);
  Restart();
  for (size_t r = 0; r < kReaders; ++r) {
    Connects(r);
    for (size_t p = 0; p < kPartitions; ++p) Reports(p, r, Placement(1));
  }
  EXPECT_THAT(context_.unknown, IsEmpty());
  EXPECT_EQ(Entries(), kPartitions * kLinks);
  // All readers are asked once, and are forgotten when their answer has been used.
  for (size_t p = 0; p < kPartitions; ++p) {
    Moves(p);
    for (size_t r = 0; r < kReaders; ++r) Reports(p, r, Placement(2));
    EXPECT_LE(Entries(), kPartitions * kLinks + kReaders);
    Assign(p, audience(p + 1));
  }
  EXPECT_EQ(Entries(), kPartitions * kLinks);
}

// Nothing is recorded of a client that joins too late, so there may be any number of them. Each
// costs what the readers have. Partitions times readers for each would take minutes.
TEST(ClosedIteration, TellsThousandsOfReadersAndPartitionsLateClientsTheEnd) {
  constexpr uint64_t kPartitions = 40'000;
  constexpr uint64_t kReaders = 1'000;
  constexpr uint64_t kLate = 300;
  IterationRecord record;
  record.commit_policy = CommitPolicy::kExplicit;
  for (uint64_t p = 1; p <= kPartitions; ++p) Apply(record, PartitionOpened{PartitionId(p)});
  for (uint64_t r = 1; r <= kReaders; ++r) Apply(record, ReaderJoined{ClientId(r), kProcess});
  Apply(record, IterationClosed{absl::InlinedVector<Index, 1>(kPartitions, 1)});
  for (uint64_t r = 1; r <= kReaders; ++r) {
    ReceivedSets final;
    for (uint64_t p = r; p <= kPartitions; p += kReaders)
      final.Add(PartitionId(p), IndexSet::Of(0, 1));
    Apply(record, ReaderEnded{ClientId(r), std::move(final)});
  }
  IterationContext context = MakeIterationContext(record);
  const auto join = [&](uint64_t client) {
    return OnConnect(record, context, {.client = ClientId(client), .incarnation = kProcess});
  };
  for (uint64_t n = 1; n <= kLate; ++n) {
    const Decision late = join(kReaders + n);
    ASSERT_THAT(late.changes, IsEmpty());
    ASSERT_THAT(late.messages, SizeIs(2));
    ASSERT_TRUE(std::holds_alternative<ToClient<End>>(late.messages.back()));
  }
  Apply(record, ReaderGone{ClientId(kReaders), ReaderStatus::kExpired});
  EXPECT_TRUE(std::holds_alternative<IterationReopened>(join(kReaders + 1).changes.at(0)));
}

}  // namespace
}  // namespace penstock::protocol
