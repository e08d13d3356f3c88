// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "control/sync/clock.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "control/sync/simulation.h"
#include "control/sync/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simulator/one_process.h"

namespace penstock::simulator {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST(Scheduler, TwoFibersTakeTurnsOverAMutexAndACondition) {
  OneProcess world;
  SharedNumber turns;
  std::vector<int> order;
  for (int parity : {0, 1}) {
    world.Start("player", [&, parity] {
      for (int turn = parity; turn < 10; turn += 2) {
        turns.AwaitAtLeast(turn);
        order.push_back(turn);
        turns.Add(1);
      }
    });
  }
  world.Run();
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(world.scheduler.now(), AtSecond(0));  // code takes no time
}

TEST(Scheduler, DeadlinesEndInTheirOrder) {
  OneProcess world;
  std::vector<int> order;
  for (int seconds : {3, 1, 5, 2, 4}) {
    world.Start("waits", [&, seconds] {
      Mutex mu;
      Condition never;
      MutexLock lock(mu);
      const absl::Time begin = BootTime();
      EXPECT_FALSE(never.WaitFor(lock, absl::Seconds(seconds), [] { return false; }));
      EXPECT_EQ(BootTime() - begin, absl::Seconds(seconds));
      order.push_back(seconds);
    });
  }
  world.Run();
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(world.scheduler.now(), AtSecond(5));
}

TEST(Scheduler, AWaitWhoseDeadlineIsOverLetsOthersRun) {
  OneProcess world;
  bool other_ran = false;
  world.Start("waits", [&] {
    Mutex mu;
    Condition never;
    MutexLock lock(mu);
    while (!other_ran) never.WaitFor(lock, -absl::Seconds(1));
  });
  world.Start("other", [&] { other_ran = true; });
  world.Run();
  EXPECT_TRUE(other_ran);
}

TEST(Scheduler, RunEndsAtItsBoundAndGoesOn) {
  OneProcess world;
  std::vector<absl::Time> woken;
  world.Start("sleeps", [&] {
    for (int i = 0; i < 3; ++i) {
      Sleep(absl::Seconds(10));
      woken.push_back(world.scheduler.now());
    }
  });
  ASSERT_TRUE(world.scheduler.Run(AtSecond(20)).ok());
  EXPECT_THAT(woken, ElementsAre(AtSecond(10), AtSecond(20)));
  ASSERT_TRUE(world.scheduler.Run(AtSecond(25)).ok());
  EXPECT_EQ(world.scheduler.now(), AtSecond(25));
  ASSERT_TRUE(world.scheduler.Run(AtSecond(24)).ok());  // time never goes back
  EXPECT_EQ(world.scheduler.now(), AtSecond(25));
  EXPECT_THAT(world.scheduler.Waiting(),
              ElementsAre(AllOf(HasSubstr("host/process"), HasSubstr("\"sleeps\""),
                                HasSubstr("waits until 2023-11-14 22:13:50"))));
  world.Run();
  EXPECT_EQ(world.scheduler.now(), AtSecond(30));
  EXPECT_THAT(world.scheduler.Waiting(), IsEmpty());
}

TEST(Scheduler, NotifyOneWakesTheFiberThatHasWaitedLongest) {
  OneProcess world;
  Mutex mu;
  Condition changed;
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) {
    world.scheduler.At(AtSecond(i), world.process, [&, i] {
      MutexLock lock(mu);
      changed.WaitFor(lock, i == 2 ? absl::Seconds(8) : absl::Hours(1));  // 2 leaves the middle
      order.push_back(i);
    });
  }
  for (int i = 11; i < 15; ++i) {
    world.scheduler.At(AtSecond(i), world.process, [&] { changed.NotifyOne(); });
  }
  world.Run();
  EXPECT_THAT(order, ElementsAre(2, 0, 1, 3, 4));
  EXPECT_EQ(world.scheduler.now(), AtSecond(14));
}

TEST(Scheduler, AFiberWaitsForALockThatAnotherHoldsAcrossAWait) {
  OneProcess world;
  Mutex mu;
  std::vector<std::string> order;
  world.Start("holder", [&] {
    MutexLock lock(mu);
    Sleep(absl::Seconds(5));
    order.push_back("released");
  });
  for (int i = 0; i < 3; ++i) {
    world.scheduler.At(AtSecond(1 + i), world.process, [&, i] {
      MutexLock lock(mu);
      order.push_back(absl::StrCat("locked by ", i));
      Sleep(absl::Seconds(1));
    });
  }
  ASSERT_TRUE(world.scheduler.Run(AtSecond(4)).ok());
  EXPECT_THAT(world.scheduler.Waiting(),
              UnorderedElementsAre(HasSubstr("\"holder\""), HasSubstr("waits for a lock for ever"),
                                   HasSubstr("for a lock"), HasSubstr("for a lock")));
  world.Run();
  EXPECT_THAT(order, ElementsAre("released", "locked by 0", "locked by 1", "locked by 2"));
  EXPECT_EQ(world.scheduler.now(), AtSecond(8));
}

TEST(Scheduler, TryLockForEndsAtItsBound) {
  OneProcess world;
  TimedMutex mu;
  std::vector<bool> locked;
  world.Start("holder", [&] {
    mu.lock();
    Sleep(absl::Seconds(5));
    mu.unlock();
  });
  world.scheduler.At(AtSecond(1), world.process, [&] {
    locked.push_back(mu.TryLockFor(absl::ZeroDuration()));
    locked.push_back(mu.TryLockFor(absl::Seconds(2)));
    EXPECT_EQ(world.scheduler.now(), AtSecond(3));
    locked.push_back(mu.TryLockFor(absl::Seconds(20)));
    EXPECT_EQ(world.scheduler.now(), AtSecond(5));
    mu.unlock();
  });
  world.Run();
  EXPECT_THAT(locked, ElementsAre(false, false, true));
}

TEST(SchedulerDeathTest, OnlyFibersWait) {
  OneProcess world;
  Mutex mu;
  Condition changed;
  MutexLock lock(mu);
  EXPECT_DEATH(changed.WaitFor(lock, absl::Seconds(1)), "check failed: current_");
}

TEST(Scheduler, AnEventMayWaitWhileOtherEventsGoOn) {
  OneProcess world;
  SharedNumber number;
  std::vector<int> order;
  world.scheduler.At(AtSecond(1), world.process, [&] {
    number.AwaitAtLeast(1);
    order.push_back(1);
  });
  world.scheduler.At(AtSecond(2), world.process, [&] {
    order.push_back(2);
    number.Add(1);
  });
  world.scheduler.At(AtSecond(-1), world.process, [&] { order.push_back(0); });  // at once
  world.Run();
  EXPECT_THAT(order, ElementsAre(0, 2, 1));
}

TEST(Scheduler, WithoutShufflingEventsOfOneTimeRunInOrder) {
  OneProcess world({.shuffles = false});
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) {
    world.scheduler.At(AtSecond(1), world.process, [&, i] { order.push_back(i); });
  }
  world.Run();
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
}

TEST(Scheduler, DestroysEventsThatAreStillToCome) {
  const auto held = std::make_shared<int>();
  {
    OneProcess world;
    world.scheduler.At(AtSecond(10), world.process, [held] {});
    world.Start("never runs", [held] {});
    EXPECT_EQ(held.use_count(), 3);
  }
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(PresentSimulation(), nullptr);
}

TEST(Scheduler, ReportsFibersThatSpin) {
  OneProcess world;
  bool stop = false;
  const auto spin = [&] {
    Mutex mu;
    Condition never;
    MutexLock lock(mu);
    while (!stop) never.WaitFor(lock, absl::ZeroDuration());
  };
  world.Start("ping", spin);
  world.Start("pong", spin);
  world.Start("sleeper", [] { Sleep(absl::Seconds(1)); });
  const absl::Status spins = world.scheduler.Run(AtSecond(10));
  EXPECT_EQ(spins.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(spins.ToString(), AllOf(HasSubstr("host/process"), HasSubstr("\"ping\"")));
  EXPECT_THAT(spins.ToString(), Not(HasSubstr("sleeper")));
  EXPECT_EQ(world.scheduler.now(), AtSecond(0));
  stop = true;
  world.Run();
  EXPECT_EQ(world.scheduler.now(), AtSecond(1));
}

// Returns the hash of a run, and the order in which fibers got their turns.
std::pair<uint64_t, std::string> PlaySeed(uint64_t seed, bool shuffles = true) {
  OneProcess world({.seed = seed, .shuffles = shuffles});
  SharedNumber number;
  std::string order;
  for (int i = 0; i < 8; ++i) {
    world.Start("player", [&, i] {
      for (int turn = 0; turn < 5; ++turn) {
        absl::StrAppend(&order, i);
        number.Add(1);
        if (turn % 2 == 0) Sleep(absl::Nanoseconds(RandomNumber() % 10));
        number.AwaitAtLeast(turn * 8);
      }
    });
  }
  world.Run();
  return {world.trace.hash(), order};
}

TEST(Scheduler, OneSeedGivesOneRun) {
  std::set<std::string> orders;
  std::set<uint64_t> hashes;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto [hash, order] = PlaySeed(seed);
    EXPECT_EQ(PlaySeed(seed), std::pair(hash, order));
    orders.insert(order);
    hashes.insert(hash);
  }
  EXPECT_THAT(orders, SizeIs(20));
  EXPECT_THAT(hashes, SizeIs(20));
  EXPECT_EQ(PlaySeed(1, /*shuffles=*/false), PlaySeed(1, /*shuffles=*/false));
}

TEST(Scheduler, AStopRequestWakesASleeper) {
  OneProcess world;
  std::stop_source stop;
  absl::Time woken[2];
  world.Start("is stopped", [&] {
    Sleep(absl::Hours(1), stop.get_token());
    woken[0] = world.scheduler.now();
    Sleep(absl::Hours(1), stop.get_token());  // stopped before
    woken[1] = world.scheduler.now();
  });
  world.scheduler.At(AtSecond(2), world.process, [&] { stop.request_stop(); });
  world.Run();
  EXPECT_THAT(woken, ElementsAre(AtSecond(2), AtSecond(2)));
}

}  // namespace
}  // namespace penstock::simulator
