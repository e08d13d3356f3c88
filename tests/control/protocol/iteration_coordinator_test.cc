// SPDX-License-Identifier: Apache-2.0
// The decisions of the iteration coordinator about partitions, one behaviour each. explore_test.cc
// explores how they work together.
#include "control/protocol/coordinator/iteration_coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/control/protocol/coordinator_harness.h"

namespace penstock::protocol {
namespace {

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

}  // namespace
}  // namespace penstock::protocol
