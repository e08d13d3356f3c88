// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/credit_manager.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const WorkerId kA(1);
const WorkerId kB(2);
constexpr int64_t kPlenty = int64_t{1} << 40;

int64_t Granted(const CreditManager::Grants& grants, WorkerId worker) {
  int64_t count = 0;
  for (const CreditManager::Grant& grant : grants)
    count += grant.worker == worker ? grant.count : 0;
  return count;
}

TEST(CreditManagerTest, AsksForNoMoreThanTheWindow) {
  CreditManager credits(10, kPlenty);
  credits.AddLink(kA);
  EXPECT_EQ(Granted(credits.TakeGrants(), kA), 10);
  EXPECT_THAT(credits.TakeGrants(), IsEmpty());
  for (int i = 0; i < 10; ++i) credits.OnReceived(kA, 100);
  EXPECT_THAT(credits.TakeGrants(), IsEmpty());  // held elements count
  EXPECT_EQ(credits.held(), 10);
}

TEST(CreditManagerTest, OneWorkerIsNeverAskedForMoreThanItsHelloCanName) {
  CreditManager credits(10 * CreditManager::kMostAskedOfOne, kPlenty);
  credits.AddLink(kA);
  credits.AddLink(kB);
  for (int i = 0; i < 3; ++i) credits.TakeGrants();
  EXPECT_EQ(credits.asked(), 2 * CreditManager::kMostAskedOfOne);
}

TEST(CreditManagerTest, DividesTheWindowBetweenWorkers) {
  CreditManager credits(10, kPlenty);
  credits.AddLink(kA);
  credits.AddLink(kB);
  CreditManager::Grants grants = credits.TakeGrants();
  EXPECT_EQ(Granted(grants, kA), 5);
  EXPECT_EQ(Granted(grants, kB), 5);
}

TEST(CreditManagerTest, ASlowWorkerDoesNotHoldItAll) {
  CreditManager credits(8, kPlenty);
  credits.AddLink(kA);
  credits.AddLink(kB);
  credits.TakeGrants();
  int64_t from_b = 0;
  for (int round = 0; round < 100; ++round) {  // A never sends
    credits.OnReceived(kB, 100);
    credits.OnReleased(kB, 100);
    from_b += Granted(credits.TakeGrants(), kB);
  }
  EXPECT_GE(from_b, 96);
  EXPECT_LE(credits.asked() + credits.held(), 8);
}

TEST(CreditManagerTest, ReleasedSlotsAreGrantedAgainInPortions) {
  CreditManager credits(64, kPlenty);
  credits.AddLink(kA);
  credits.TakeGrants();
  for (int i = 0; i < 64; ++i) credits.OnReceived(kA, 100);
  int64_t messages = 0;
  for (int i = 0; i < 64; ++i) {
    credits.OnReleased(kA, 100);
    messages += static_cast<int64_t>(credits.TakeGrants().size());
  }
  EXPECT_LE(messages, 8);
  EXPECT_EQ(credits.asked(), 64);
}

TEST(CreditManagerTest, BytesBoundItToo) {
  CreditManager credits(1000, 10'000);
  credits.AddLink(kA);
  credits.TakeGrants();
  for (int i = 0; i < 1000; ++i) credits.OnReceived(kA, 1000);
  for (int i = 0; i < 1000; ++i) credits.OnReleased(kA, 1000);
  EXPECT_EQ(Granted(credits.TakeGrants(), kA), 10);
}

TEST(CreditManagerTest, AWindowSmallerThanAnElementLetsOneThrough) {
  CreditManager credits(4, 100);
  credits.AddLink(kA);
  credits.TakeGrants();
  for (int i = 0; i < 4; ++i) credits.OnReceived(kA, 1 << 20);
  EXPECT_THAT(credits.TakeGrants(), IsEmpty());
  for (int i = 0; i < 4; ++i) credits.OnReleased(kA, 1 << 20);
  EXPECT_EQ(Granted(credits.TakeGrants(), kA), 1);
}

TEST(CreditManagerTest, AutoGrowsWhereElementsAreSmall) {
  CreditManager credits(0, kPlenty);
  credits.AddLink(kA);
  EXPECT_EQ(credits.limit(), 16);
  credits.TakeGrants();
  credits.OnReceived(kA, 192);
  EXPECT_EQ(credits.limit(), 16'384);
  for (int i = 0; i < 1000; ++i) credits.OnReceived(kA, 64 << 20);
  EXPECT_EQ(credits.limit(), 16);
}

TEST(CreditManagerTest, AutoHasLeaveForTwoOfEachWorkerWithinTheBytes) {
  constexpr int64_t kWorkers = 40, kMean = 1 << 20;
  for (const int64_t bytes : {kPlenty, 50 * kMean}) {
    CreditManager credits(0, bytes);
    for (int64_t worker = 1; worker <= kWorkers; ++worker) credits.AddLink(WorkerId(worker));
    for (int64_t worker = 1; worker <= kWorkers; ++worker) {
      credits.TakeGrants();
      credits.OnReceived(WorkerId(worker), kMean);
    }
    credits.TakeGrants();
    EXPECT_EQ(credits.limit(), bytes == kPlenty ? 2 * kWorkers : 50);
    EXPECT_EQ(credits.asked() + credits.held(), credits.limit());
  }
}

TEST(CreditManagerTest, AClosedLinkGivesItsRequestsBack) {
  CreditManager credits(4, kPlenty);
  credits.AddLink(kA);
  credits.TakeGrants();
  credits.OnReceived(kA, 100);
  credits.RemoveLink(kA);
  EXPECT_EQ(credits.asked(), 0);
  EXPECT_EQ(credits.held(), 1);
  credits.AddLink(kB);
  EXPECT_EQ(Granted(credits.TakeGrants(), kB), 3);
}

TEST(CreditManagerTest, AnIdleWorkerGivesCreditsBackToAWaitingOne) {
  CreditManager credits(1, kPlenty);
  credits.AddLink(kA);
  credits.AddLink(kB);
  CreditManager::Grants grants = credits.TakeGrants();
  ASSERT_EQ(grants.size(), 1u);
  const WorkerId idle = grants[0].worker;
  const WorkerId waits = idle == kA ? kB : kA;
  EXPECT_TRUE(credits.Starving());
  EXPECT_THAT(credits.TakeRecalls(), IsEmpty());  // has just been asked
  EXPECT_THAT(credits.TakeRecalls(), ElementsAre(idle));
  EXPECT_THAT(credits.TakeRecalls(), IsEmpty());  // is on its way
  credits.OnRecalled(idle, 1);
  EXPECT_EQ(Granted(credits.TakeGrants(), waits), 1);
}

TEST(CreditManagerTest, AWorkerThatGaveBackIsPassedOverMoreAndMoreButNotForGood) {
  CreditManager credits(1, kPlenty);
  credits.AddLink(kA);
  credits.AddLink(kB);
  int of_b = 0;  // B sends what it is asked for, A nothing
  int of_a = 0;
  for (int i = 0; i < 400; ++i) {
    const CreditManager::Grants grants = credits.TakeGrants();
    ASSERT_EQ(grants.size(), 1u);
    if (grants[0].worker == kA) {
      ++of_a;
      credits.OnRecalled(kA, 1);
    } else {
      ++of_b;
      credits.OnReceived(kB, 100);
      credits.OnReleased(kB, 100);
    }
  }
  EXPECT_GT(of_b, 370);
  EXPECT_GT(of_a, 10);
  // As soon as A sends, it has its turn again.
  while (credits.TakeGrants()[0].worker != kA) {
    credits.OnReceived(kB, 100);
    credits.OnReleased(kB, 100);
  }
  for (const WorkerId worker : {kA, kB, kA, kB}) {
    credits.OnReceived(worker, 100);
    credits.OnReleased(worker, 100);
    EXPECT_EQ(Granted(credits.TakeGrants(), worker == kA ? kB : kA), 1);
  }
}

// Near the end of a shared job, a slow reader holds many elements, and its workers have none left.
TEST(CreditManagerTest, CreditsOfIdleWorkersDoNotGoRoundAndRound) {
  constexpr int kWorkers = 92;
  CreditManager credits(16384, kPlenty);
  for (int i = 1; i <= kWorkers; ++i) credits.AddLink(WorkerId(i));
  credits.TakeGrants();
  for (int i = 1; i <= kWorkers; i += 3) {  // each third worker sends its share
    for (const WorkerId worker(i); credits.asked(worker) > 0;) credits.OnReceived(worker, 100);
  }
  for (int released = 0; released < 100; ++released) credits.OnReleased(WorkerId(1), 100);
  int64_t recalls = 0;
  for (int round = 0; round < 100; ++round) {
    credits.TakeGrants();
    for (const WorkerId worker : credits.TakeRecalls()) {
      ++recalls;
      credits.OnRecalled(worker, credits.asked(worker));
      credits.TakeGrants();
    }
  }
  EXPECT_FALSE(credits.Starving());
  EXPECT_LT(recalls, 10 * kWorkers);
  // A worker that has elements again gets its share as soon as it sends one.
  while (credits.held() > 0) credits.OnReleased(WorkerId(1), 100);
  credits.OnReceived(WorkerId(2), 100);
  credits.OnReleased(WorkerId(2), 100);
  credits.TakeGrants();
  EXPECT_GT(credits.asked(WorkerId(2)), 100);
}

// The share of two credits is less than a portion of such elements.
TEST(CreditManagerTest, AnIdleWorkerDoesNotHoldUpGrantsOfLargeElements) {
  constexpr int64_t kLarge = 1 << 20;
  CreditManager credits(4, kPlenty);
  credits.AddLink(kA);
  credits.AddLink(kB);
  credits.TakeGrants();
  credits.OnReceived(kB, kLarge);
  credits.OnReleased(kB, kLarge);
  credits.OnRecalled(kA, 2);  // A has nothing
  for (int round = 0; round < 20; ++round) {
    credits.TakeGrants();
    ASSERT_EQ(credits.asked(kB), 2) << round;
    credits.OnReceived(kB, kLarge);
    credits.OnReleased(kB, kLarge);
  }
}

TEST(CreditManagerTest, AWorkerWhoseElementIsNotReleasedYetDoesNotStarve) {
  CreditManager credits(2, kPlenty);
  credits.AddLink(kA);
  credits.AddLink(kB);
  credits.TakeGrants();
  credits.OnReceived(kA, 100);  // B has data too, but has not sent it yet
  EXPECT_FALSE(credits.Starving());
  for (int look = 0; look < 3; ++look) EXPECT_THAT(credits.TakeRecalls(), IsEmpty());
  credits.OnReleased(kA, 100);
  EXPECT_EQ(Granted(credits.TakeGrants(), kA), 1);
  EXPECT_EQ(credits.asked(kB), 1);
}

TEST(CreditManagerTest, ASlotGoesBackToTheWorkerWhoseElementWasInIt) {
  CreditManager credits(3, kPlenty);
  const WorkerId kC(3);
  for (const WorkerId worker : {kA, kB, kC}) credits.AddLink(worker);
  credits.TakeGrants();
  // Whichever is first, and however long the others have waited.
  for (const WorkerId taken : {kC, kB, kC, kA, kB}) {
    for (const WorkerId worker : {kA, kB, kC}) {
      if (credits.asked(worker) == 1) credits.OnReceived(worker, 100);
    }
    credits.OnReleased(taken, 100);
    EXPECT_EQ(Granted(credits.TakeGrants(), taken), 1);
  }
  EXPECT_EQ(credits.asked() + credits.held(), 3);
}

TEST(CreditManagerTest, ElementsOfAnEarlierLinkDoNotCountForTheNewOne) {
  CreditManager credits(1, kPlenty);
  credits.AddLink(kA);
  credits.AddLink(kB);
  credits.TakeGrants();
  credits.OnReceived(kA, 100);
  credits.RemoveLink(kA);
  credits.AddLink(kA);
  credits.OnReleased(kA, 100);
  EXPECT_EQ(credits.held(), 0);
  while (Granted(credits.TakeGrants(), kB) == 0) credits.OnRecalled(kA, 1);
  EXPECT_TRUE(credits.Starving());  // A starves
}

TEST(CreditManagerTest, AWorkerThatSendsIsNotRecalled) {
  CreditManager credits(2, kPlenty);
  credits.AddLink(kA);
  credits.TakeGrants();
  credits.AddLink(kB);
  ASSERT_TRUE(credits.Starving());
  credits.OnReceived(kA, 100);
  EXPECT_THAT(credits.TakeRecalls(), IsEmpty());
  EXPECT_THAT(credits.TakeRecalls(), ElementsAre(kA));  // nothing since
}

TEST(CreditManagerTest, UnrequestedElementsCountAsHeld) {
  CreditManager credits(1, kPlenty);
  credits.AddLink(kA);
  credits.TakeGrants();
  credits.OnReceived(kA, 100);
  credits.OnReceived(kA, 100);
  EXPECT_EQ(credits.held(), 2);
  EXPECT_EQ(credits.asked(), 0);
  EXPECT_THAT(credits.TakeGrants(), IsEmpty());
}

}  // namespace
}  // namespace penstock::client
