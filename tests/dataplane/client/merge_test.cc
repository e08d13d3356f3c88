// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/delivery/merge.h"

#include <optional>
#include <utility>
#include <vector>

#include "dataplane/client/delivery/ordered_merge.h"
#include "dataplane/client/delivery/receive_limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using ::testing::ElementsAre;

ReceivedElement From(uint64_t worker, Index index) {
  return {.identity = {.index = index}, .from = WorkerId(worker)};
}

std::vector<Index> Drain(Merge& merge) {
  std::vector<Index> order;
  while (!merge.empty()) order.push_back(merge.Pop().identity.index);
  return order;
}

TEST(MergeTest, AnyKeepsTheOrderOfReceiving) {
  Merge merge(MergeOrder::kAny);
  for (Index i : {0, 1, 2, 3}) merge.Push(From(i < 3 ? 1 : 2, i));
  EXPECT_THAT(Drain(merge), ElementsAre(0, 1, 2, 3));
}

TEST(MergeTest, FairTakesOneOfEachInTurn) {
  Merge merge(MergeOrder::kFair);
  for (Index i : {10, 11, 12}) merge.Push(From(1, i));
  merge.Push(From(2, 20));
  merge.Push(From(3, 30));
  merge.Push(From(3, 31));
  EXPECT_THAT(Drain(merge), ElementsAre(10, 20, 30, 11, 31, 12));
}

TEST(MergeTest, FairForgetsAWorkerWithoutElements) {
  Merge merge(MergeOrder::kFair);
  EXPECT_TRUE(merge.Forget(WorkerId(1)));
  merge.Push(From(1, 10));
  merge.Push(From(2, 20));
  EXPECT_FALSE(merge.Forget(WorkerId(1)));
  EXPECT_EQ(merge.Pop().identity.index, 10);
  EXPECT_TRUE(merge.Forget(WorkerId(1)));  // it was worker 1's turn
  merge.Push(From(3, 30));
  EXPECT_THAT(Drain(merge), ElementsAre(20, 30));
}

TEST(MergeTest, FairGoesOnAfterTheLastTurn) {
  Merge merge(MergeOrder::kFair);
  merge.Push(From(1, 10));
  EXPECT_EQ(merge.Pop().identity.index, 10);
  merge.Push(From(1, 11));
  merge.Push(From(2, 20));
  EXPECT_THAT(Drain(merge), ElementsAre(20, 11));
}

TEST(MergeTest, GivesBackTheLaterOnesOfOnePartition) {
  Merge merge(MergeOrder::kFair);
  const auto received = [](uint64_t worker, uint64_t partition, Index index) {
    return ReceivedElement{.identity = {.partition = PartitionId(partition), .index = index},
                           .from = WorkerId(worker)};
  };
  for (Index i : {10, 11, 12}) merge.Push(received(1, 1, i));
  for (Index i : {20, 21}) merge.Push(received(1, 2, i));
  merge.Push(received(2, 1, 13));
  EXPECT_EQ(merge.CountOf(PartitionId(1)), 4u);
  std::vector<Index> back;
  for (const ReceivedElement& its : merge.GiveBack(PartitionId(1), 2))
    back.push_back(its.identity.index);
  EXPECT_THAT(back, ElementsAre(12, 13));
  EXPECT_EQ(merge.size(), 4u);
  EXPECT_THAT(Drain(merge), ElementsAre(10, 11, 20, 21));
}

// --- In a fixed order --------------------------------------------------------------

ReceivedElement At(uint64_t partition, Index index) {
  return {.identity = {.partition = PartitionId(partition), .index = index}};
}

// Returns partition and index of all elements that may be returned now.
std::vector<std::pair<uint64_t, Index>> DrainOrdered(OrderedMerge& merge) {
  std::vector<std::pair<uint64_t, Index>> order;
  while (merge.ready()) {
    const ReceivedElement received = merge.Pop();
    order.emplace_back(received.identity.partition.value(), received.identity.index);
  }
  return order;
}

using Order = std::vector<std::pair<uint64_t, Index>>;

TEST(OrderedMergeTest, TakesOneOfEachPartitionHoweverTheyCome) {
  OrderedMerge merge;
  merge.Open({.partitions = 3}, 0, {{}, {}, {}});
  for (Index i : {1, 0}) merge.Push(At(3, i));
  merge.Push(At(2, 0));
  EXPECT_FALSE(merge.ready());
  EXPECT_EQ(merge.size(), 3u);
  merge.Push(At(1, 0));
  EXPECT_EQ(DrainOrdered(merge), (Order{{1, 0}, {2, 0}, {3, 0}}));
  merge.Push(At(1, 1));
  merge.Push(At(2, 1));
  EXPECT_EQ(DrainOrdered(merge), (Order{{1, 1}, {2, 1}, {3, 1}}));
  EXPECT_EQ(merge.size(), 0u);
}

TEST(OrderedMergeTest, WaitsForTheEndOfAPartitionAndLeavesItOut) {
  OrderedMerge merge;
  merge.Open({.partitions = 2}, 0, {{}, {}});
  merge.Push(At(1, 0));
  merge.Push(At(2, 0));
  merge.Push(At(2, 1));
  EXPECT_EQ(DrainOrdered(merge), (Order{{1, 0}, {2, 0}}));
  merge.SetEnd(PartitionId(1), 1);
  EXPECT_EQ(DrainOrdered(merge), (Order{{2, 1}}));
  merge.Push(At(2, 2));
  EXPECT_EQ(DrainOrdered(merge), (Order{{2, 2}}));
}

TEST(OrderedMergeTest, GoesOnInTheMiddleOfARow) {
  OrderedMerge merge;
  merge.Open({.partitions = 3}, 0, {IndexSet::Of(0, 5), IndexSet::Of(0, 5), IndexSet::Of(0, 4)});
  EXPECT_FALSE(merge.Expects(PartitionId(1), 4));
  EXPECT_FALSE(merge.Expects(PartitionId(4), 5));
  for (uint64_t partition : {1, 2, 3}) merge.Push(At(partition, 5));
  EXPECT_FALSE(merge.ready());
  merge.Push(At(3, 4));
  EXPECT_EQ(DrainOrdered(merge), (Order{{3, 4}, {1, 5}, {2, 5}, {3, 5}}));
}

TEST(OrderedMergeTest, MissingIndicesAtTheEndDoNotExist) {
  OrderedMerge merge;
  merge.Open({.partitions = 3}, 0, {{}, {}, {}});
  merge.Push(At(2, 0));
  merge.Push(At(3, 0));
  merge.Push(At(3, 1));
  EXPECT_FALSE(merge.ready());
  merge.SetAllEnded();
  EXPECT_EQ(DrainOrdered(merge), (Order{{2, 0}, {3, 0}, {3, 1}}));
}

TEST(OrderedMergeTest, OfOneConsumerHasItsElementsAlone) {
  OrderedMerge merge;
  // Positions 3, 4, 5 … belong to consumers 0, 1, 0 …; 5, of partition 2, was delivered before.
  merge.Open({.partitions = 3, .consumers = 2, .first = 3}, 0, {{}, IndexSet::Of(0, 1), {}});
  EXPECT_FALSE(merge.Expects(PartitionId(2), 1));
  merge.Push(At(3, 1));
  EXPECT_FALSE(merge.ready());
  merge.Push(At(1, 1));
  EXPECT_EQ(DrainOrdered(merge), (Order{{1, 1}, {3, 1}}));
  EXPECT_TRUE(merge.Expects(PartitionId(2), 2));
}

// --- Receive limits ----------------------------------------------------------------

TEST(ReceiveLimitsTest, DividesTheWindowBetweenPartitions) {
  ReceiveLimits limits(64, 1 << 30);
  limits.Open(4, 4, 1);
  EXPECT_EQ(limits.TakeUpdate(PartitionId(1), 0), 16);
  EXPECT_EQ(limits.TakeUpdate(PartitionId(1), 7), std::nullopt);
  EXPECT_EQ(limits.TakeUpdate(PartitionId(1), 8), 24);
  EXPECT_EQ(limits.TakeUpdate(PartitionId(2), 0), 16);
}

TEST(ReceiveLimitsTest, CountsTheElementsOfThisReader) {
  ReceiveLimits limits(64, 1 << 30);
  limits.Open(4, 2, 3);  // every third element of two partitions
  EXPECT_EQ(limits.partition_budget(), 32);
  EXPECT_EQ(limits.TakeUpdate(PartitionId(1), 1), 97);
  EXPECT_EQ(limits.TakeUpdate(PartitionId(1), 46), std::nullopt);
  EXPECT_EQ(limits.TakeUpdate(PartitionId(1), 49), 145);
}

TEST(ReceiveLimitsTest, AnElementOfEachFitsHoweverLargeTheyAre) {
  ReceiveLimits limits(0, 1 << 20);
  limits.Open(8, 8, 1);
  EXPECT_EQ(limits.partition_budget(), 2);
  limits.OnReceived(1 << 20);
  EXPECT_EQ(limits.partition_budget(), 1);
}

TEST(ReceiveLimitsTest, SaysAllAgainWhenItMayBeLost) {
  ReceiveLimits limits(8, 1 << 20);
  limits.Open(2, 2, 1);
  EXPECT_EQ(limits.TakeUpdate(PartitionId(2), 10), 14);
  EXPECT_EQ(limits.TakeUpdate(PartitionId(2), 10), std::nullopt);
  limits.Forget();
  EXPECT_EQ(limits.TakeUpdate(PartitionId(2), 10), 14);
}

}  // namespace
}  // namespace penstock::client
