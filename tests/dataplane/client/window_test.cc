// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/window.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const WorkerId kA(1);
const WorkerId kB(2);
constexpr int64_t kPlenty = int64_t{1} << 40;

int64_t Granted(const Window::Grants& grants, WorkerId worker) {
  int64_t count = 0;
  for (const Window::Grant& grant : grants) count += grant.worker == worker ? grant.count : 0;
  return count;
}

TEST(WindowTest, AsksForNoMoreThanTheWindow) {
  Window window(10, kPlenty);
  window.AddLink(kA);
  EXPECT_EQ(Granted(window.TakeGrants(), kA), 10);
  EXPECT_THAT(window.TakeGrants(), IsEmpty());
  for (int i = 0; i < 10; ++i) window.OnLanded(kA, 100);
  EXPECT_THAT(window.TakeGrants(), IsEmpty());  // what is held counts
  EXPECT_EQ(window.held(), 10);
}

TEST(WindowTest, OneWorkerIsNeverAskedForMoreThanItsHelloCanName) {
  Window window(10 * Window::kMostAskedOfOne, kPlenty);
  window.AddLink(kA);
  window.AddLink(kB);
  for (int i = 0; i < 3; ++i) window.TakeGrants();
  EXPECT_EQ(window.asked(), 2 * Window::kMostAskedOfOne);
}

TEST(WindowTest, DividesTheWindowBetweenWorkers) {
  Window window(10, kPlenty);
  window.AddLink(kA);
  window.AddLink(kB);
  Window::Grants grants = window.TakeGrants();
  EXPECT_EQ(Granted(grants, kA), 5);
  EXPECT_EQ(Granted(grants, kB), 5);
}

TEST(WindowTest, ASlowWorkerDoesNotHoldItAll) {
  Window window(8, kPlenty);
  window.AddLink(kA);
  window.AddLink(kB);
  window.TakeGrants();
  int64_t from_b = 0;
  for (int round = 0; round < 100; ++round) {  // A never sends
    window.OnLanded(kB, 100);
    window.OnTaken(kB, 100);
    from_b += Granted(window.TakeGrants(), kB);
  }
  EXPECT_GE(from_b, 96);
  EXPECT_LE(window.asked() + window.held(), 8);
}

TEST(WindowTest, WhatIsTakenIsAskedForAgainInPortions) {
  Window window(64, kPlenty);
  window.AddLink(kA);
  window.TakeGrants();
  for (int i = 0; i < 64; ++i) window.OnLanded(kA, 100);
  int64_t messages = 0;
  for (int i = 0; i < 64; ++i) {
    window.OnTaken(kA, 100);
    messages += static_cast<int64_t>(window.TakeGrants().size());
  }
  EXPECT_LE(messages, 8);
  EXPECT_EQ(window.asked(), 64);
}

TEST(WindowTest, BytesBoundItToo) {
  Window window(1000, 10'000);
  window.AddLink(kA);
  window.TakeGrants();
  for (int i = 0; i < 1000; ++i) window.OnLanded(kA, 1000);
  for (int i = 0; i < 1000; ++i) window.OnTaken(kA, 1000);
  EXPECT_EQ(Granted(window.TakeGrants(), kA), 10);
}

TEST(WindowTest, AWindowSmallerThanAnElementLetsOneThrough) {
  Window window(4, 100);
  window.AddLink(kA);
  window.TakeGrants();
  for (int i = 0; i < 4; ++i) window.OnLanded(kA, 1 << 20);
  EXPECT_THAT(window.TakeGrants(), IsEmpty());
  for (int i = 0; i < 4; ++i) window.OnTaken(kA, 1 << 20);
  EXPECT_EQ(Granted(window.TakeGrants(), kA), 1);
}

TEST(WindowTest, AutoGrowsWhereElementsAreSmall) {
  Window window(0, kPlenty);
  window.AddLink(kA);
  EXPECT_EQ(window.limit(), 16);
  window.TakeGrants();
  window.OnLanded(kA, 192);
  EXPECT_EQ(window.limit(), 16'384);
  for (int i = 0; i < 1000; ++i) window.OnLanded(kA, 64 << 20);
  EXPECT_EQ(window.limit(), 16);
}

TEST(WindowTest, AutoHasLeaveForTwoOfEachWorkerWithinTheBytes) {
  constexpr int64_t kWorkers = 40, kMean = 1 << 20;
  for (const int64_t bytes : {kPlenty, 50 * kMean}) {
    Window window(0, bytes);
    for (int64_t worker = 1; worker <= kWorkers; ++worker) window.AddLink(WorkerId(worker));
    for (int64_t worker = 1; worker <= kWorkers; ++worker) {
      window.TakeGrants();
      window.OnLanded(WorkerId(worker), kMean);
    }
    window.TakeGrants();
    EXPECT_EQ(window.limit(), bytes == kPlenty ? 2 * kWorkers : 50);
    EXPECT_EQ(window.asked() + window.held(), window.limit());
  }
}

TEST(WindowTest, ALinkThatGoesGivesBackWhatItWasAskedFor) {
  Window window(4, kPlenty);
  window.AddLink(kA);
  window.TakeGrants();
  window.OnLanded(kA, 100);
  window.RemoveLink(kA);
  EXPECT_EQ(window.asked(), 0);
  EXPECT_EQ(window.held(), 1);
  window.AddLink(kB);
  EXPECT_EQ(Granted(window.TakeGrants(), kB), 3);
}

TEST(WindowTest, AnIdleWorkerGivesBackWhatAnotherWaitsFor) {
  Window window(1, kPlenty);
  window.AddLink(kA);
  window.AddLink(kB);
  Window::Grants grants = window.TakeGrants();
  ASSERT_EQ(grants.size(), 1u);
  const WorkerId idle = grants[0].worker;
  const WorkerId waits = idle == kA ? kB : kA;
  EXPECT_TRUE(window.Starving());
  EXPECT_THAT(window.TakeRecalls(), IsEmpty());  // has just been asked
  EXPECT_THAT(window.TakeRecalls(), ElementsAre(idle));
  EXPECT_THAT(window.TakeRecalls(), IsEmpty());  // is on its way
  window.OnRecalled(idle, 1);
  EXPECT_EQ(Granted(window.TakeGrants(), waits), 1);
}

TEST(WindowTest, AWorkerThatGaveBackIsPassedOverMoreAndMoreButNotForGood) {
  Window window(1, kPlenty);
  window.AddLink(kA);
  window.AddLink(kB);
  int of_b = 0;  // B sends what it is asked for, A nothing
  int of_a = 0;
  for (int i = 0; i < 400; ++i) {
    const Window::Grants grants = window.TakeGrants();
    ASSERT_EQ(grants.size(), 1u);
    if (grants[0].worker == kA) {
      ++of_a;
      window.OnRecalled(kA, 1);
    } else {
      ++of_b;
      window.OnLanded(kB, 100);
      window.OnTaken(kB, 100);
    }
  }
  EXPECT_GT(of_b, 370);
  EXPECT_GT(of_a, 10);
  // As soon as it sends, it has its turn again.
  while (window.TakeGrants()[0].worker != kA) {
    window.OnLanded(kB, 100);
    window.OnTaken(kB, 100);
  }
  for (const WorkerId worker : {kA, kB, kA, kB}) {
    window.OnLanded(worker, 100);
    window.OnTaken(worker, 100);
    EXPECT_EQ(Granted(window.TakeGrants(), worker == kA ? kB : kA), 1);
  }
}

TEST(WindowTest, AWorkerWhoseElementIsNotTakenYetDoesNotStarve) {
  Window window(2, kPlenty);
  window.AddLink(kA);
  window.AddLink(kB);
  window.TakeGrants();
  window.OnLanded(kA, 100);  // B has data too, and has not come to send it
  EXPECT_FALSE(window.Starving());
  for (int look = 0; look < 3; ++look) EXPECT_THAT(window.TakeRecalls(), IsEmpty());
  window.OnTaken(kA, 100);
  EXPECT_EQ(Granted(window.TakeGrants(), kA), 1);
  EXPECT_EQ(window.asked(kB), 1);
}

TEST(WindowTest, ASlotGoesBackToTheWorkerWhoseElementWasInIt) {
  Window window(3, kPlenty);
  const WorkerId kC(3);
  for (const WorkerId worker : {kA, kB, kC}) window.AddLink(worker);
  window.TakeGrants();
  // Whoever is first, and however long the others have waited.
  for (const WorkerId taken : {kC, kB, kC, kA, kB}) {
    for (const WorkerId worker : {kA, kB, kC}) {
      if (window.asked(worker) == 1) window.OnLanded(worker, 100);
    }
    window.OnTaken(taken, 100);
    EXPECT_EQ(Granted(window.TakeGrants(), taken), 1);
  }
  EXPECT_EQ(window.asked() + window.held(), 3);
}

TEST(WindowTest, WhatTheLinkBeforeItHasHereIsNotOfTheLinkDialledAnew) {
  Window window(1, kPlenty);
  window.AddLink(kA);
  window.AddLink(kB);
  window.TakeGrants();
  window.OnLanded(kA, 100);
  window.RemoveLink(kA);
  window.AddLink(kA);
  window.OnTaken(kA, 100);
  EXPECT_EQ(window.held(), 0);
  while (Granted(window.TakeGrants(), kB) == 0) window.OnRecalled(kA, 1);
  EXPECT_TRUE(window.Starving());  // A
}

TEST(WindowTest, AWorkerThatSendsIsNotRecalled) {
  Window window(2, kPlenty);
  window.AddLink(kA);
  window.TakeGrants();
  window.AddLink(kB);
  ASSERT_TRUE(window.Starving());
  window.OnLanded(kA, 100);
  EXPECT_THAT(window.TakeRecalls(), IsEmpty());
  EXPECT_THAT(window.TakeRecalls(), ElementsAre(kA));  // nothing since
}

TEST(WindowTest, WhatIsSentWithoutBeingAskedForIsHeldAllTheSame) {
  Window window(1, kPlenty);
  window.AddLink(kA);
  window.TakeGrants();
  window.OnLanded(kA, 100);
  window.OnLanded(kA, 100);
  EXPECT_EQ(window.held(), 2);
  EXPECT_EQ(window.asked(), 0);
  EXPECT_THAT(window.TakeGrants(), IsEmpty());
}

}  // namespace
}  // namespace penstock::client
