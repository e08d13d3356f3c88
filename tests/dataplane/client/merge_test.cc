// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/merge.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using ::testing::ElementsAre;

Landed From(uint64_t worker, Index index) {
  return {.identity = {.index = index}, .from = WorkerId(worker)};
}

std::vector<Index> Drain(Merge& merge) {
  std::vector<Index> order;
  while (!merge.empty()) order.push_back(merge.Pop().identity.index);
  return order;
}

TEST(MergeTest, AnyKeepsTheOrderOfLanding) {
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

TEST(MergeTest, FairGoesOnBehindWhoseTurnWas) {
  Merge merge(MergeOrder::kFair);
  merge.Push(From(1, 10));
  EXPECT_EQ(merge.Pop().identity.index, 10);
  merge.Push(From(1, 11));
  merge.Push(From(2, 20));
  EXPECT_THAT(Drain(merge), ElementsAre(20, 11));
}

}  // namespace
}  // namespace penstock::client
