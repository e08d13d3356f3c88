// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/permits.h"

#include <atomic>
#include <future>

#include "gtest/gtest.h"

namespace penstock::worker {
namespace {

TEST(Permits, APauseLetsTheNextPartitionCompute) {
  Permits permits(1);
  Permit first(permits), second(permits);
  ASSERT_TRUE(first.Take());
  auto second_computes = std::async(std::launch::async, [&] { return second.Take(); });
  first.Pause();
  EXPECT_TRUE(second_computes.get());
  auto first_again = std::async(std::launch::async, [&] { return first.Resume(); });
  second.Pause();
  EXPECT_TRUE(first_again.get());
  first.Pause();  // balances nothing else: the destructor gives up what is left
  EXPECT_TRUE(second.Resume());
}

TEST(Permits, OneThatNeverPausesGivesOthersATurn) {
  Permits permits(1, /*slice=*/std::chrono::nanoseconds(0));
  Permit first(permits), second(permits);
  ASSERT_TRUE(first.Take());
  EXPECT_FALSE(first.ShouldYield());  // nobody waits
  std::atomic<bool> took = false;
  auto turn = std::async(std::launch::async, [&] {
    took = second.Take();
    second.Pause();
  });
  while (!took) {
    if (first.ShouldYield()) {
      ASSERT_TRUE(first.Yield());
    }
  }
  turn.get();
  EXPECT_FALSE(first.ShouldYield());
}

TEST(Permits, OneIsHeldForASliceAtLeast) {
  Permits permits(1, /*slice=*/std::chrono::hours(1));
  Permit first(permits), second(permits);
  ASSERT_TRUE(first.Take());
  auto waits = std::async(std::launch::async, [&] { return second.Take(); });
  EXPECT_FALSE(first.ShouldYield());
  first.Pause();
  EXPECT_TRUE(waits.get());
}

TEST(Permits, PausesNest) {
  Permits permits(1);
  Permit first(permits), second(permits);
  ASSERT_TRUE(first.Take());
  first.Pause();
  first.Pause();
  EXPECT_TRUE(first.Resume());  // still paused once, so it does not wait
  EXPECT_TRUE(second.Take());
  second.Pause();
  EXPECT_TRUE(first.Resume());
}

TEST(Permits, CancelEndsTheWait) {
  Permits permits(1);
  Permit first(permits), second(permits);
  ASSERT_TRUE(first.Take());
  auto waits = std::async(std::launch::async, [&] { return second.Take(); });
  second.Cancel();
  EXPECT_FALSE(waits.get());
  EXPECT_FALSE(second.Take());
}

TEST(Permits, AClaimThatGoesAwayGivesItsPermitBack) {
  Permits permits(1);
  Permit second(permits);
  {
    Permit first(permits);
    ASSERT_TRUE(first.Take());
  }
  EXPECT_TRUE(second.Take());
}

TEST(Permits, WhatIsHeldGrowsButInPausesAndInTheQueue) {
  Permits permits(1);
  Permit first(permits), second(permits);
  EXPECT_EQ(second.held().count(), 0);
  ASSERT_TRUE(first.Take());
  const auto begun = first.held();
  while (first.held() <= begun) {
  }
  auto queued = std::async(std::launch::async, [&] { return second.Take(); });
  EXPECT_EQ(second.held().count(), 0);
  first.Pause();
  EXPECT_TRUE(queued.get());
  const auto paused = first.held();
  while (second.held().count() == 0) {
  }
  EXPECT_EQ(first.held(), paused);
}

}  // namespace
}  // namespace penstock::worker
