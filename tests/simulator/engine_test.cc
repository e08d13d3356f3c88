// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/sync/clock.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "control/sync/simulation.h"
#include "control/sync/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/simulator/engine/dice.h"
#include "tools/simulator/engine/process.h"
#include "tools/simulator/engine/scheduler.h"
#include "tools/simulator/engine/trace.h"

namespace penstock::simulator {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

thread_local int value_of_fiber = 7;
const FiberVariable kValueOfFiber(value_of_fiber);

absl::Time AtSecond(double seconds) {
  return kBeginOfWorld + absl::Seconds(seconds);
}

// A simulation with one process.
class OneProcess {
 public:
  explicit OneProcess(const SchedulerOptions& options = {})
      : scheduler(options, trace), process(scheduler.NewProcess("host", "process")) {}

  uint64_t Start(std::string_view name, Scheduler::Event run) {
    return scheduler.StartIn(process, name, std::move(run));
  }
  // Until nothing is left to do.
  void Run() { EXPECT_TRUE(scheduler.Run(absl::InfiniteFuture()).ok()); }

  Trace trace;
  Scheduler scheduler;
  std::shared_ptr<Process> process;
};

// A condition, the lock that it waits with, and a value that fibers change.
struct SharedNumber {
  void Add(int by) {
    MutexLock lock(mu);
    value += by;
    changed.NotifyAll();
  }
  void AwaitAtLeast(int bound) {
    MutexLock lock(mu);
    changed.Wait(lock, [&]() REQUIRES(mu) { return value >= bound; });
  }
  Mutex mu;
  Condition changed;
  int value GUARDED_BY(mu) = 0;
};

TEST(Dice, GivesTheNumbersOfSplitMix64) {
  Dice dice(1234567);
  EXPECT_EQ(dice.Next(), 6457827717110365317u);
  EXPECT_EQ(dice.Next(), 3203168211198807973u);
}

TEST(Dice, StaysWithinItsBoundsAndReachesThem) {
  Dice dice(1);
  std::set<int64_t> drawn;
  for (int i = 0; i < 200; ++i) drawn.insert(dice.Between(-2, 3));
  EXPECT_THAT(drawn, ElementsAre(-2, -1, 0, 1, 2, 3));
  dice.Between(INT64_MIN, INT64_MAX);
  EXPECT_EQ(dice.Between(INT64_MAX, INT64_MAX), INT64_MAX);
  for (int i = 0; i < 200; ++i) {
    EXPECT_FALSE(dice.WithChance(0));
    EXPECT_TRUE(dice.WithChance(1));
    const absl::Duration drawn_time = dice.Draw({absl::Seconds(1), absl::Seconds(2)});
    EXPECT_GE(drawn_time, absl::Seconds(1));
    EXPECT_LE(drawn_time, absl::Seconds(2));
  }
}

TEST(Trace, HashDependsOnEachPartAndOnTheOrder) {
  std::set<uint64_t> hashes;
  for (int i = 0; i < 6; ++i) {
    Trace trace;
    trace.Add(AtSecond(i == 1), i == 2 ? "b" : "a", i == 3, i == 4, i == 5 ? "bytes" : "");
    hashes.insert(trace.hash());
    trace.Add(AtSecond(0), "next", 0, 0);
    hashes.insert(trace.hash());
    EXPECT_EQ(trace.entries(), 2);
  }
  EXPECT_THAT(hashes, SizeIs(12));
}

TEST(Trace, PrintsALineForEachEntry) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* const out = open_memstream(&text, &size);
  Trace trace(out);
  trace.Add(AtSecond(0.25), "switch", 2, 17);
  trace.Add(AtSecond(1), "message", 3, 4, "a\n");
  std::fclose(out);
  EXPECT_STREQ(text,
               "2023-11-14 22:13:20.250000000 switch 2 17\n"
               "2023-11-14 22:13:21.000000000 message 3 4 2 bytes: a\\n\n");
  std::free(text);
}

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

TEST(Scheduler, ThreadsAreFibersOfTheProcessThatStartsThem) {
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

TEST(Scheduler, CodeOutsideOfFibersHasAProcessOfItsOwn) {
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

TEST(SchedulerDeathTest, OnlyFibersWait) {
  OneProcess world;
  Mutex mu;
  Condition changed;
  MutexLock lock(mu);
  EXPECT_DEATH(changed.WaitFor(lock, absl::Seconds(1)), "check failed: current_");
}

TEST(Scheduler, ProcessesHaveClocksAndNumbersOfTheirOwn) {
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

// Objects that last as long as the program draw numbers only in its first run.
TEST(Scheduler, NumbersThatAreDrawnOutsideOfFibersChangeNoOthers) {
  const auto next = [](int drawn_before) {
    Trace trace;
    Scheduler scheduler({}, trace);
    for (int i = 0; i < drawn_before; ++i) RandomNumber();
    return std::pair(scheduler.dice().Next(), scheduler.NewProcess("a", "a")->dice().Next());
  };
  EXPECT_EQ(next(0), next(2));
}

TEST(Scheduler, EachFiberHasItsOwnValuesOfFiberVariables) {
  value_of_fiber = 7;
  OneProcess world;
  value_of_fiber = 8;
  for (int i = 0; i < 20; ++i) {
    world.scheduler.At(AtSecond(i % 4), world.process, [&, i] {
      EXPECT_EQ(value_of_fiber, 7);  // also on the stack of a fiber that has ended
      value_of_fiber = i;
      Sleep(absl::Seconds(i % 3));
      EXPECT_EQ(value_of_fiber, i);
    });
  }
  world.Run();
  EXPECT_EQ(value_of_fiber, 8);
}

TEST(Scheduler, AFiberMayWaitWhileItHandlesAnException) {
  OneProcess world;
  int handled = 0;
  for (int i = 0; i < 3; ++i) {
    world.Start("throws", [&, i] {
      try {
        throw std::runtime_error(absl::StrCat(i));
      } catch (const std::exception&) {
        Sleep(absl::Seconds(3 - i));
        try {
          throw;  // the exception of this fiber
        } catch (const std::exception& error) {
          EXPECT_EQ(error.what(), absl::StrCat(i));
          ++handled;
        }
      }
      EXPECT_EQ(std::current_exception(), nullptr);
    });
  }
  world.Run();
  EXPECT_EQ(handled, 3);
}

TEST(Scheduler, AFiberMayWaitWhileTheStackUnwinds) {
  struct Waits {
    ~Waits() {
      EXPECT_EQ(std::uncaught_exceptions(), 1);
      Sleep(absl::Seconds(2));
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
  };
  OneProcess world;
  world.Start("throws", [] {
    try {
      const Waits waits;
      throw std::runtime_error("thrown");
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "thrown");
    }
  });
  world.scheduler.At(AtSecond(1), world.process, [] { EXPECT_EQ(std::uncaught_exceptions(), 0); });
  world.Run();
}

TEST(Scheduler, FibersOfAPausedProcessDoNotRun) {
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

TEST(Scheduler, APausedProcessGetsNoLock) {
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

TEST(Scheduler, AKilledProcessBeginsNoEventsButItsFibersGoOn) {
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

TEST(Scheduler, RunsTenThousandFibersAtOnce) {
  for (bool guard_pages : {true, false}) {
    OneProcess world({.stack_bytes = 64 << 10, .guard_pages = guard_pages});
    SharedNumber all_wait;
    int waiting = 0;
    int ended = 0;
    for (int i = 0; i < 10'000; ++i) {
      world.Start("one in many", [&, i] {
        Sleep(absl::Milliseconds(i % 100));
        if (++waiting == 10'000) all_wait.Add(1);
        all_wait.AwaitAtLeast(1);
        ++ended;
      });
    }
    world.Run();
    EXPECT_EQ(ended, 10'000);
  }
}

// Fills `bytes` of the stack, from its high end.
[[gnu::noinline]] void FillStack(size_t bytes) {
  volatile char frame[1024];
  for (volatile char& byte : frame) byte = 1;
  if (bytes > sizeof(frame)) FillStack(bytes - sizeof(frame));
  frame[0] = 2;  // not a tail call
}

void OverflowAStack(bool guard_pages) {
  OneProcess world({.stack_bytes = 16 << 10, .guard_pages = guard_pages});
  for (int i = 0; i < 6; ++i) world.Start("neighbour", [] { Sleep(absl::Seconds(1)); });
  world.Run();
  world.Start("deepest", [] { Sleep(absl::Seconds(1)); });
  world.Start("overflows", [] {
    FillStack(80 << 10);  // more than a stack of the address sanitizer
    Sleep(absl::Seconds(1));
  });
  world.Run();
}

TEST(SchedulerDeathTest, NoticesAStackThatOverflows) {
  EXPECT_DEATH(OverflowAStack(/*guard_pages=*/true), "");
  EXPECT_DEATH(OverflowAStack(/*guard_pages=*/false), "check failed: .*stack|AddressSanitizer");
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
