// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <stop_token>

#include "control/sync/clock.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "control/sync/thread.h"
#include "gtest/gtest.h"

namespace penstock {
namespace {

// A condition, the lock that it waits with, and a value that a thread sets.
struct Flag {
  void Set() {
    MutexLock lock(mu);
    set = true;
    changed.NotifyOne();
  }
  Mutex mu;
  Condition changed;
  bool set GUARDED_BY(mu) = false;
};

TEST(Condition, WaitsAsLongAsAnInfiniteBound) {
  Flag flag;
  Thread sets = *StartThread("the test", [&] { flag.Set(); });
  {
    MutexLock lock(flag.mu);
    const auto is_set = [&]() REQUIRES(flag.mu) { return flag.set; };
    EXPECT_TRUE(flag.changed.WaitFor(lock, absl::InfiniteDuration(), is_set));
    EXPECT_TRUE(flag.changed.WaitUntil(lock, absl::InfiniteFuture(), is_set));
  }
  sets.join();
}

TEST(Condition, ReturnsWhetherThePredicateHoldsAtTheEndOfTheBound) {
  Flag flag;
  MutexLock lock(flag.mu);
  const absl::Time begin = BootTime();
  EXPECT_FALSE(flag.changed.WaitFor(lock, absl::Milliseconds(20), [] { return false; }));
  EXPECT_GE(BootTime() - begin, absl::Milliseconds(20));
  EXPECT_TRUE(flag.changed.WaitFor(lock, absl::ZeroDuration(), [] { return true; }));
  EXPECT_FALSE(flag.changed.WaitFor(lock, -absl::InfiniteDuration(), [] { return false; }));
  EXPECT_FALSE(flag.changed.WaitUntil(lock, absl::InfinitePast(), [] { return false; }));
}

TEST(Condition, DoesNotWaitForABoundThatIsNotPositive) {
  Flag flag;
  MutexLock lock(flag.mu);
  flag.changed.WaitFor(lock, absl::ZeroDuration());
  flag.changed.WaitFor(lock, -absl::InfiniteDuration());
}

TEST(Condition, KeepsAnInfiniteTimeOfDayInfinite) {
  EXPECT_EQ(BootTimeAt(absl::InfiniteFuture()), absl::InfiniteFuture());
  EXPECT_EQ(BootTimeAt(absl::InfinitePast()), absl::InfinitePast());
}

TEST(Clock, CountsTheBootTimeOfATimeOfDay) {
  const absl::Time before = BootTime();
  const absl::Time at = BootTimeAt(WallTime() + absl::Hours(1));
  EXPECT_GT(at, before + absl::Minutes(59));
  EXPECT_LT(at, before + absl::Minutes(61));
}

TEST(Clock, GoesOnWhileAThreadSleeps) {
  const SteadyClock::time_point steady = SteadyClock::now();
  const absl::Time boot = BootTime();
  Sleep(absl::Milliseconds(5));
  EXPECT_GE(SteadyClock::now() - steady, std::chrono::milliseconds(5));
  EXPECT_GE(BootTime() - boot, absl::Milliseconds(5));
}

TEST(Thread, SleepsUntilItIsStopped) {
  std::stop_source stop;
  Thread sleeps =
      *StartThread("the test", [&] { Sleep(absl::InfiniteDuration(), stop.get_token()); });
  stop.request_stop();
  sleeps.join();
  Sleep(absl::InfiniteDuration(), stop.get_token());  // it is stopped already
  Sleep(absl::Milliseconds(1), {});                   // nothing stops it
}

TEST(Mutex, GivesUpATimedAttempt) {
  TimedMutex mu;
  ASSERT_TRUE(mu.TryLockFor(absl::InfiniteDuration()));
  Thread other =
      *StartThread("the test", [&] { EXPECT_FALSE(mu.TryLockFor(absl::Milliseconds(5))); });
  other.join();
  mu.unlock();
  EXPECT_TRUE(mu.TryLockFor(absl::ZeroDuration()));
  mu.unlock();
}

TEST(Random, DoesNotRepeatNumbers) {
  std::set<uint64_t> numbers;
  for (int i = 0; i < 1000; ++i) numbers.insert(RandomNumber());
  EXPECT_EQ(numbers.size(), 1000);
  EXPECT_NE(RandomId(), 0);
}

TEST(Random, DrawsFromTheWholeRange) {
  double least = 2;
  double most = 1;
  for (int i = 0; i < 1000; ++i) {
    const double number = RandomBetween(1, 2);
    ASSERT_GE(number, 1);
    ASSERT_LT(number, 2);
    least = std::min(least, number);
    most = std::max(most, number);
  }
  EXPECT_LT(least, 1.1);
  EXPECT_GT(most, 1.9);
}

}  // namespace
}  // namespace penstock
