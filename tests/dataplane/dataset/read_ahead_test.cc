// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/read_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace penstock {
namespace {

void FallShortOften(ReadAhead& ahead) {
  for (int i = 0; i < 3; ++i) ahead.FellShort();
}

TEST(ReadAhead, GrowsWhenItFallsShortAgainAndAgain) {
  ReadAheadBudget budget(1 << 20);
  ReadAhead ahead(budget, 2, 64);
  ahead.Gave(100);
  ahead.FellShort();
  EXPECT_EQ(ahead.depth(), 2);
  ahead.FellShort();
  ahead.FellShort();
  EXPECT_EQ(ahead.depth(), 4);
}

TEST(ReadAhead, FallingShortNowAndThenIsNoReason) {
  ReadAheadBudget budget(1 << 20);
  ReadAhead ahead(budget, 2, 64);
  for (int i = 0; i < 1000; ++i) {
    if (i % 32 == 0) ahead.FellShort();
    ahead.Gave(100);
  }
  EXPECT_EQ(ahead.depth(), 2);
}

TEST(ReadAhead, StopsAtItsMost) {
  ReadAheadBudget budget(1 << 20);
  ReadAhead ahead(budget, 2, 12);
  for (int i = 0; i < 10; ++i) FallShortOften(ahead);
  EXPECT_EQ(ahead.depth(), 12);
}

TEST(ReadAhead, StaysWithinTheBudget) {
  ReadAheadBudget budget(1000);
  ReadAhead first(budget, 2, 64), second(budget, 2, 64);
  first.Gave(100);
  second.Gave(100);
  for (int i = 0; i < 10; ++i) {
    FallShortOften(first);
    FallShortOften(second);
    EXPECT_LE(budget.claimed(), budget.limit());
  }
  EXPECT_EQ(first.depth() + second.depth(), 8 + 4);
}

TEST(ReadAhead, SimultaneousGrowthStaysWithinTheBudget) {
  ReadAheadBudget budget(5000);
  std::atomic<int64_t> most = 0;
  std::vector<std::thread> nodes;
  for (int i = 0; i < 4; ++i) {
    nodes.emplace_back([&] {
      for (int round = 0; round < 3000; ++round) {
        ReadAhead ahead(budget, 2, 64);
        ahead.Gave(100);
        for (int k = 0; k < 6; ++k) {
          FallShortOften(ahead);
          int64_t seen = budget.claimed();
          for (int64_t before = most; before < seen && !most.compare_exchange_weak(before, seen);) {
          }
        }
      }
    });
  }
  for (std::thread& node : nodes) node.join();
  EXPECT_LE(most, budget.limit());
  EXPECT_GT(most, budget.limit() / 2) << "they did not meet";
  EXPECT_EQ(budget.claimed(), 0);
}

TEST(ReadAhead, ABudgetWithinAnotherKeepsToBoth) {
  ReadAheadBudget whole(1000);
  {
    ReadAheadBudget part(500, &whole);
    ReadAhead inside(part, 2, 64), outside(whole, 2, 64);
    inside.Gave(100);
    outside.Gave(100);
    for (int i = 0; i < 10; ++i) FallShortOften(inside);
    EXPECT_EQ(inside.depth(), 4);
    for (int i = 0; i < 10; ++i) FallShortOften(outside);
    EXPECT_EQ(outside.depth(), 8);
    EXPECT_EQ(whole.claimed(), 800);
    whole.SetLimit(500);  // the next node that gives an element makes room
    inside.Gave(100);
    EXPECT_EQ(inside.depth(), 2);
    EXPECT_EQ(part.claimed(), 0);
  }
  EXPECT_EQ(whole.claimed(), 0);
}

TEST(ReadAhead, ShrinksWhenTheBudgetIsHalved) {
  ReadAheadBudget budget(10'000);
  ReadAhead ahead(budget, 2, 64);
  ahead.Gave(100);
  for (int i = 0; i < 10; ++i) FallShortOften(ahead);
  EXPECT_EQ(ahead.depth(), 64);
  budget.SetLimit(5'000);
  ahead.Gave(100);
  EXPECT_EQ(ahead.depth(), 32);
  EXPECT_LE(budget.claimed(), budget.limit());
}

TEST(ReadAhead, ShrinksWhenElementsGrow) {
  ReadAheadBudget budget(10'000);
  ReadAhead ahead(budget, 2, 64);
  ahead.Gave(100);
  for (int i = 0; i < 10; ++i) FallShortOften(ahead);
  for (int i = 0; i < 100; ++i) ahead.Gave(1000);
  EXPECT_LE(budget.claimed(), budget.limit());
  EXPECT_LT(ahead.depth(), 16);
}

TEST(ReadAhead, GivesItsClaimBack) {
  ReadAheadBudget budget(10'000);
  {
    ReadAhead ahead(budget, 2, 64);
    ahead.Gave(100);
    FallShortOften(ahead);
    EXPECT_GT(budget.claimed(), 0);
  }
  EXPECT_EQ(budget.claimed(), 0);
}

TEST(ReadAhead, AFixedDepthIsNeitherTunedNorClaimed) {
  ReadAheadBudget budget(10);
  ReadAhead ahead(budget, 8, 8);
  ahead.Gave(1000);
  FallShortOften(ahead);
  EXPECT_EQ(ahead.depth(), 8);
  EXPECT_EQ(budget.claimed(), 0);
}

}  // namespace
}  // namespace penstock
