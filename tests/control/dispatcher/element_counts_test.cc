// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/monitoring/element_counts.h"

#include "gtest/gtest.h"

namespace penstock::control {
namespace {

namespace p = protocol;

constexpr IterationId kIteration(6);
constexpr size_t kPartitions = 400;
constexpr uint64_t kReaders = 100;

// One iteration with many partitions and readers. The context stays as it was made.
class ElementCountsTest : public testing::Test {
 protected:
  ElementCountsTest() {
    counts_.Begin(kIteration, record_);
    for (uint64_t client = 1; client <= kReaders; ++client)
      Alter(p::ReaderJoined{ClientId(client), Incarnation(client)});
    for (uint64_t n = 1; n <= kPartitions; ++n) Alter(p::PartitionOpened{PartitionId(n)});
    context_ = p::MakeIterationContext(record_);
  }
  void Alter(const p::IterationChange& change) {
    ASSERT_TRUE(p::Fits(record_, change));
    p::Apply(record_, change);
    counts_.Changed(kIteration, record_, change);
  }
  void Report(uint64_t client, const p::Report& report) {
    counts_.Reported(kIteration, record_, context_, ClientId(client), Incarnation(client), report);
  }
  // Counts all that must be counted again. Returns how many sets and intervals were read.
  int64_t Read() {
    constexpr int64_t kEnough = 1 << 30;
    int64_t room = kEnough;
    EXPECT_TRUE(counts_.Count(kIteration, record_, &context_, room));
    return kEnough - room;
  }
  int64_t received() const { return counts_.TotalsOf(kIteration).received; }
  int64_t committed() const { return counts_.TotalsOf(kIteration).committed; }

  p::IterationRecord record_;
  p::IterationContext context_;
  ElementCounts counts_;
};

TEST_F(ElementCountsTest, NoSetOfAReaderIsReadWhileReadersLoseNothing) {
  for (uint64_t client = 1; client <= kReaders; ++client) {
    for (uint64_t n = 1; n <= 4; ++n) {
      const PartitionId partition(4 * (client - 1) + n);
      Report(client, {.partition = partition, .received = IndexSet::Of(0, 5)});
      Alter(p::ReaderCommitted{ClientId(client), partition, IndexSet::Of(0, 2)});
    }
  }
  EXPECT_EQ(Read(), 0);
  EXPECT_EQ(received(), 5 * 400);
  EXPECT_EQ(committed(), 2 * 400);
}

// The first report on a new stream names all partitions. Most of them never served the reader.
TEST_F(ElementCountsTest, AFirstWholeReportLosesNothing) {
  for (uint64_t n = 1; n <= kPartitions; ++n)
    Report(1, {.partition = PartitionId(n), .received = IndexSet::Of(0, n % 4), .whole = true});
  EXPECT_EQ(Read(), 0);
  EXPECT_EQ(received(), (1 + 2 + 3) * 100);
}

TEST_F(ElementCountsTest, OnlyThePartitionOfWhichElementsMayBeLostIsReadAgain) {
  Report(1, {.partition = PartitionId(3), .received = IndexSet::Of(0, 5)});
  Report(1, {.partition = PartitionId(4), .received = IndexSet::Of(0, 5)});
  Report(1, {.partition = PartitionId(3), .returned = IndexSet::Of(1, 2)});
  Report(1, {.partition = PartitionId(9), .whole = true});
  context_.partitions[2].acks.At(0).reported = IndexSet::Of(0, 1);
  const int64_t read = Read();
  EXPECT_GT(read, 0);
  EXPECT_LE(read, static_cast<int64_t>(2 + kReaders));
  EXPECT_EQ(received(), 1 + 5);
  EXPECT_EQ(Read(), 0);
}

// A reader whose Welcome was partial reports what it has on the new stream, and then says so.
TEST_F(ElementCountsTest, WhatIsNotReportedAgainOnAStreamIsLost) {
  for (const uint64_t n : {3, 4})
    Report(1, {.partition = PartitionId(n), .received = IndexSet::Of(0, 5)});
  context_.readers[0].completes = true;
  context_.partitions[2].acks.At(0).reported = IndexSet::Of(0, 1);
  context_.partitions[3].acks.At(0).reported = IndexSet::Of(0, 5);
  Report(1, {.partition = PartitionId(3), .received = IndexSet::Of(0, 1)});
  Read();
  EXPECT_EQ(received(), 1 + 5);
  context_.readers[0].completes = false;
  context_.partitions[3].acks.At(0).reported.clear();
  counts_.Completed(kIteration, ClientId(1));
  Read();
  EXPECT_EQ(received(), 1);
}

TEST_F(ElementCountsTest, TotalsAreTheSumsOfTheSets) {
  Report(1, {.partition = PartitionId(3), .received = IndexSet::Of(0, 5)});
  Report(2, {.partition = PartitionId(3), .received = IndexSet::Of(3, 8)});
  Alter(p::ReaderCommitted{ClientId(2), PartitionId(7), IndexSet::Of(2, 4)});
  EXPECT_EQ(received(), 10);
  EXPECT_EQ(committed(), 2);
  Alter(p::ReaderReplaced{.client = ClientId(1), .incarnation = Incarnation(1'000)});
  context_.partitions[2].acks.At(1).reported = IndexSet::Of(3, 8);
  const int64_t read = Read();
  EXPECT_GT(read, 0);
  EXPECT_LT(read, static_cast<int64_t>(kPartitions)) << "it read a partition that lost nothing";
  EXPECT_EQ(received(), 7);
  EXPECT_EQ(committed(), 2);
  int64_t of_sets = 0;
  for (const ElementCounts::Sets& sets : counts_.Of(kIteration)) of_sets += sets.received.size();
  EXPECT_EQ(received(), of_sets);
}

TEST_F(ElementCountsTest, OnlyAPartitionThatIsNotStaleCanBeCountedWrongly) {
  const auto are_true = [&] { return counts_.AreTrue(kIteration, record_, &context_); };
  EXPECT_TRUE(are_true());
  context_.partitions[2].acks.At(0).reported = IndexSet::Of(0, 5);
  EXPECT_FALSE(are_true()) << "the counts were not told";
  Report(1, {.partition = PartitionId(3), .received = IndexSet::Of(0, 5)});
  EXPECT_TRUE(are_true());
  context_.partitions[2].acks.At(0).reported = IndexSet::Of(0, 1);
  EXPECT_FALSE(are_true());
  Report(1, {.partition = PartitionId(3), .received = IndexSet::Of(0, 1), .whole = true});
  EXPECT_TRUE(are_true()) << "counted when somebody asks";
  EXPECT_EQ(received(), 5);
  Read();
  EXPECT_TRUE(are_true());
  EXPECT_EQ(received(), 1);
}

// A dispatcher that starts again has only the record.
TEST_F(ElementCountsTest, BeginsWithWhatIsCommitted) {
  Alter(p::ReaderCommitted{ClientId(2), PartitionId(7), IndexSet::Of(2, 4)});
  ElementCounts begun;
  begun.Begin(kIteration, record_);
  EXPECT_EQ(begun.TotalsOf(kIteration).received, 2);
  EXPECT_EQ(begun.TotalsOf(kIteration).committed, 2);
  int64_t room = 1;
  EXPECT_TRUE(begun.Count(kIteration, record_, &context_, room));
  EXPECT_EQ(room, 1);
}

}  // namespace
}  // namespace penstock::control
