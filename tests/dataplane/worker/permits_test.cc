// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/permits.h"

#include <atomic>
#include <future>
#include <map>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"

namespace penstock::worker {
namespace {

constexpr JobId kJob(1);

TEST(Permits, APauseLetsTheNextPartitionCompute) {
  Permits permits(1);
  Permit first(permits, kJob), second(permits, kJob);
  ASSERT_TRUE(first.Take());
  auto second_computes = std::async(std::launch::async, [&] { return second.Take(); });
  first.Pause();
  EXPECT_TRUE(second_computes.get());
  auto first_again = std::async(std::launch::async, [&] { return first.Resume(); });
  second.Pause();
  EXPECT_TRUE(first_again.get());
  first.Pause();  // has no matching Resume(): the destructor gives the rest up
  EXPECT_TRUE(second.Resume());
}

TEST(Permits, AHolderThatNeverPausesGivesOthersATurn) {
  Permits permits(1, /*slice=*/std::chrono::nanoseconds(0));
  Permit first(permits, kJob), second(permits, kJob);
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
  Permit first(permits, kJob), second(permits, kJob);
  ASSERT_TRUE(first.Take());
  auto waits = std::async(std::launch::async, [&] { return second.Take(); });
  EXPECT_FALSE(first.ShouldYield());
  first.Pause();
  EXPECT_TRUE(waits.get());
}

TEST(Permits, PausesNest) {
  Permits permits(1);
  Permit first(permits, kJob), second(permits, kJob);
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
  Permit first(permits, kJob), second(permits, kJob);
  ASSERT_TRUE(first.Take());
  auto waits = std::async(std::launch::async, [&] { return second.Take(); });
  second.Cancel();
  EXPECT_FALSE(waits.get());
  EXPECT_FALSE(second.Take());
}

// Returns in which order partitions of these jobs, which wait in the order of `waiting`, get the
// only permit when `held` gives it up. A job without a share has the usual one.
std::vector<uint64_t> TurnsAfter(Permit& held, Permits& permits,
                                 const std::vector<uint64_t>& waiting,
                                 std::map<uint64_t, JobShare> shares = {}) {
  EXPECT_TRUE(held.Take());
  std::vector<uint64_t> turns;  // written by the holder of the permit
  std::vector<std::future<bool>> waits;
  for (const uint64_t job : waiting) {
    waits.push_back(std::async(std::launch::async, [&permits, &turns, job, share = shares[job]] {
      Permit permit(permits, JobId(job), share);
      const bool took = permit.Take();
      turns.push_back(job);
      return took;
    }));
    EXPECT_TRUE(Eventually([&] { return permits.waiting() == static_cast<int>(waits.size()); }));
  }
  held.Pause();
  for (auto& wait : waits) EXPECT_TRUE(wait.get());
  return turns;
}

TEST(Permits, JobsTakeTurnsHoweverManyPartitionsEachHas) {
  Permits permits(1);
  Permit held(permits, JobId(1));
  EXPECT_THAT(TurnsAfter(held, permits, {1, 1, 1, 2, 2, 3}),
              testing::ElementsAre(2, 3, 1, 2, 1, 1));
}

TEST(Permits, JobsTakeTurnsByTheirWeights) {
  Permits permits(1);
  Permit held(permits, JobId(9));
  EXPECT_THAT(TurnsAfter(held, permits, {1, 1, 1, 1, 1, 1, 2, 2, 2}, {{1, {.weight = 3}}}),
              testing::ElementsAre(1, 2, 1, 1, 2, 1, 1, 1, 2));
}

TEST(Permits, AHigherPriorityHasAllTurns) {
  Permits permits(1);
  Permit held(permits, JobId(9));
  EXPECT_THAT(TurnsAfter(held, permits, {1, 2, 3, 1, 2, 3},
                         {{1, {.priority = -1}}, {2, {.weight = 9}}, {3, {.priority = 1}}}),
              testing::ElementsAre(3, 3, 2, 2, 1, 1));
}

TEST(Permits, AHigherPriorityKeepsItsPermitThoughOthersWait) {
  Permits permits(1, /*slice=*/std::chrono::nanoseconds(0));
  Permit high(permits, JobId(1), {.priority = 1}), low(permits, JobId(2));
  ASSERT_TRUE(high.Take());
  auto waits = std::async(std::launch::async, [&] { return low.Take(); });
  ASSERT_TRUE(Eventually([&] { return permits.waiting() == 1; }));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(high.Yield());
  EXPECT_EQ(permits.waiting(), 1);
  high.Pause();
  EXPECT_TRUE(waits.get());
}

TEST(Permits, AHigherPriorityGetsThePermitWhenItIsYielded) {
  Permits permits(1, /*slice=*/std::chrono::nanoseconds(0));
  Permit low(permits, JobId(2)), high(permits, JobId(1), {.priority = 1});
  ASSERT_TRUE(low.Take());
  auto computes = std::async(std::launch::async, [&] { return high.Take(); });
  ASSERT_TRUE(Eventually([&] { return permits.waiting() == 1; }));
  auto yields = std::async(std::launch::async, [&] { return low.Yield(); });
  EXPECT_TRUE(computes.get());
  high.Pause();
  EXPECT_TRUE(yields.get());
}

TEST(Permits, AJobDoesNotMakeUpForTurnsThatItDidNotNeed) {
  Permits permits(1, /*slice=*/std::chrono::nanoseconds(0));
  Permit busy(permits, JobId(1));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(busy.Take());
    busy.Pause();
    ASSERT_TRUE(busy.Resume());
    ASSERT_TRUE(busy.Yield());
  }
  EXPECT_THAT(TurnsAfter(busy, permits, {1, 2, 1, 2}), testing::ElementsAre(2, 1, 2, 1));
}

TEST(Permits, AClaimThatGoesAwayGivesItsPermitBack) {
  Permits permits(1);
  Permit second(permits, kJob);
  {
    Permit first(permits, kJob);
    ASSERT_TRUE(first.Take());
  }
  EXPECT_TRUE(second.Take());
}

TEST(Permits, HeldTimeGrowsExceptInPausesAndInTheQueue) {
  Permits permits(1);
  Permit first(permits, kJob), second(permits, kJob);
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
