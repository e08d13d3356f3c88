// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/permits.h"

#include <atomic>
#include <future>
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

TEST(Permits, JobsTakeTurnsHoweverManyPartitionsEachHas) {
  Permits permits(1);
  Permit held(permits, kJob);
  ASSERT_TRUE(held.Take());
  std::vector<uint64_t> turns;  // written by the holder of the permit
  std::vector<std::future<bool>> waits;
  for (const uint64_t job : {1, 1, 1, 2, 2, 3}) {
    waits.push_back(std::async(std::launch::async, [&permits, &turns, job] {
      Permit permit(permits, JobId(job));
      const bool took = permit.Take();
      turns.push_back(job);
      return took;
    }));
    ASSERT_TRUE(Eventually([&] { return permits.waiting() == static_cast<int>(waits.size()); }));
  }
  held.Pause();
  for (auto& wait : waits) EXPECT_TRUE(wait.get());
  EXPECT_THAT(turns, testing::ElementsAre(2, 3, 1, 2, 1, 1));
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
