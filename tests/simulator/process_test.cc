// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "control/sync/simulation.h"
#include "control/sync/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simulator/one_process.h"

namespace penstock::simulator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Processes, ThreadsAreFibersOfTheProcessThatStartsThem) {
  OneProcess world;
  std::vector<uint64_t> processes;
  bool detached_ran = false;
  world.Start("main", [&] {
    Thread thread = *StartThread("child", [&] {
      Sleep(absl::Seconds(1));
      processes.push_back(PresentSimulation()->ProcessNumber());
      EXPECT_NE(CurrentThread(), ThreadId());
    });
    EXPECT_NE(thread.get_id(), CurrentThread());
    thread.join();
    EXPECT_FALSE(thread.joinable());
    EXPECT_EQ(world.scheduler.now(), AtSecond(1));
    Thread ended = *StartThread("ended", [] {});
    Sleep(absl::Seconds(1));
    ended.join();  // long over
    StartThread("detached", [&] {
      Sleep(absl::Seconds(1));
      detached_ran = true;
    })->detach();
  });
  world.Run();
  EXPECT_THAT(processes, ElementsAre(world.process->number()));
  EXPECT_TRUE(detached_ran);
  EXPECT_EQ(world.scheduler.now(), AtSecond(3));
}

TEST(Processes, CodeOutsideOfFibersHasAProcessOfItsOwn) {
  OneProcess world;
  EXPECT_EQ(BootTime(), absl::UnixEpoch() + absl::Hours(1));
  EXPECT_EQ(WallTime(), kBeginOfWorld);
  EXPECT_EQ(world.scheduler.ProcessNumber(), 1u);
  EXPECT_EQ(CurrentThread(), ThreadId());
  EXPECT_EQ(world.scheduler.current_process(), nullptr);
  EXPECT_NE(RandomNumber(), RandomNumber());
  bool ran = false;
  Thread thread = *StartThread("outside", [&] {
    EXPECT_EQ(world.scheduler.ProcessNumber(), 1u);
    ran = true;
  });
  world.Run();
  EXPECT_TRUE(ran);
  thread.join();  // it has ended, so nothing waits
}

TEST(Processes, ProcessesHaveClocksAndNumbersOfTheirOwn) {
  OneProcess world;
  const auto skewed = world.scheduler.NewProcess("other", "skewed");
  skewed->SetClocks(absl::Minutes(5), -absl::Hours(2));
  uint64_t numbers[2];
  world.Start("right", [&] { numbers[0] = RandomNumber(); });
  world.scheduler.StartIn(skewed, "skewed", [&] {
    numbers[1] = RandomNumber();
    EXPECT_EQ(world.scheduler.current_process(), skewed);
    EXPECT_EQ(BootTime(), kBootTimeAtBegin + absl::Minutes(5));
    EXPECT_EQ(WallTime(), kBeginOfWorld - absl::Hours(2));
    Sleep(absl::Seconds(3));
    EXPECT_EQ(world.scheduler.now(), AtSecond(3));
  });
  world.Run();
  EXPECT_NE(numbers[0], numbers[1]);
}

TEST(Processes, ClocksMayDrift) {
  OneProcess world;
  const auto start = [&](std::string_view name, int64_t drift_ppb, absl::Duration sleep,
                         absl::Duration passes) {
    const auto process = world.scheduler.NewProcess("other", std::string(name));
    process->SetDrift(drift_ppb);
    world.scheduler.StartIn(process, name, [&world, sleep, passes] {
      Sleep(sleep);
      EXPECT_EQ(world.scheduler.now() - kBeginOfWorld, passes);
      EXPECT_EQ(BootTime() - kBootTimeAtBegin, sleep);
      EXPECT_EQ(WallTime() - kBeginOfWorld, sleep);
    });
  };
  start("fast", 250'000'000, absl::Seconds(5), absl::Seconds(4));
  start("slow", -200'000'000, absl::Seconds(4), absl::Seconds(5));
  world.Run();
}

// The time of its clocks is not a whole number of the world's nanoseconds.
TEST(Processes, AClockThatDriftsIsAtTheDeadlineWhenAWaitEnds) {
  OneProcess world;
  world.process->SetDrift(123'457);
  int turns = 0;
  world.Start("waits", [&] {
    const absl::Time begin = BootTime();
    while (BootTime() < begin + absl::Seconds(1)) {
      Sleep(begin + absl::Seconds(1) - BootTime());
      ++turns;
    }
    EXPECT_LE(BootTime() - begin, absl::Seconds(1) + absl::Nanoseconds(2));
  });
  world.Run();
  EXPECT_EQ(turns, 1);
}

// Objects that last as long as the program draw numbers only in its first run.
TEST(Processes, NumbersThatAreDrawnOutsideOfFibersChangeNoOthers) {
  const auto next = [](int drawn_before) {
    Trace trace;
    Scheduler scheduler({}, trace);
    for (int i = 0; i < drawn_before; ++i) RandomNumber();
    return std::pair(scheduler.dice().Next(), scheduler.NewProcess("a", "a")->dice().Next());
  };
  EXPECT_EQ(next(0), next(2));
}

TEST(Processes, FibersOfAPausedProcessDoNotRun) {
  OneProcess world;
  const auto other = world.scheduler.NewProcess("host", "other");
  SharedNumber number;
  std::vector<absl::Time> ran;
  const auto note = [&] { ran.push_back(world.scheduler.now()); };
  world.Start("sleeps", [&] {
    Sleep(absl::Seconds(2));
    note();
    EXPECT_EQ(BootTime(), kBootTimeAtBegin + absl::Seconds(10));  // its clocks have gone on
  });
  world.Start("is notified", [&] {
    number.AwaitAtLeast(1);
    note();
  });
  world.scheduler.At(AtSecond(3), world.process, note);
  world.scheduler.At(AtSecond(1), other, [&] { world.process->Pause(); });
  world.scheduler.At(AtSecond(4), other, [&] {
    number.Add(1);
    note();
    EXPECT_THAT(world.scheduler.Waiting(),
                ElementsAre(HasSubstr("its process is paused"), HasSubstr("is paused")));
  });
  world.scheduler.At(AtSecond(10), other, [&] {
    world.process->Continue();
    world.scheduler.Continued(*world.process);
  });
  world.Run();
  EXPECT_THAT(ran, ElementsAre(AtSecond(4), AtSecond(10), AtSecond(10), AtSecond(10)));
}

TEST(Processes, APausedProcessGetsNoLock) {
  OneProcess world;
  const auto other = world.scheduler.NewProcess("host", "other");
  Mutex mu;
  world.scheduler.StartIn(other, "holder", [&] {
    MutexLock lock(mu);
    Sleep(absl::Seconds(2));
    world.process->Pause();
  });
  absl::Time got;
  world.scheduler.At(AtSecond(1), world.process, [&] {
    MutexLock lock(mu);
    got = world.scheduler.now();
  });
  world.scheduler.At(AtSecond(3), other, [&] {
    MutexLock lock(mu);
    EXPECT_EQ(world.scheduler.now(), AtSecond(3));
  });
  world.scheduler.At(AtSecond(4), other, [&] {
    world.process->Continue();
    world.scheduler.Continued(*world.process);
  });
  world.Run();
  EXPECT_EQ(got, AtSecond(4));
}

TEST(Processes, AKilledProcessBeginsNoEventsButItsFibersGoOn) {
  OneProcess world;
  const auto director = world.scheduler.NewProcess("host", "director");
  const auto held = std::make_shared<int>();
  bool ended = false;
  bool child_ran = false;
  world.Start("ghost", [&] {
    Sleep(absl::Seconds(2));
    StartThread("child", [&] { child_ran = true; })->join();
    ended = true;
  });
  world.scheduler.At(AtSecond(3), world.process,
                     [held] { ADD_FAILURE() << "a ghost got an event"; });
  world.scheduler.At(AtSecond(1), director, [&] { world.process->Kill(); });
  world.Run();
  EXPECT_TRUE(child_ran);
  EXPECT_TRUE(ended);
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace penstock::simulator
