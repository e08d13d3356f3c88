// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <exception>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "control/sync/simulation.h"
#include "control/sync/thread.h"
#include "gtest/gtest.h"
#include "tests/simulator/one_process.h"

namespace penstock::simulator {
namespace {

thread_local int value_of_fiber = 7;
const FiberVariable kValueOfFiber(value_of_fiber);

TEST(Fibers, EachFiberHasItsOwnValuesOfFiberVariables) {
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

TEST(Fibers, AFiberMayWaitWhileItHandlesAnException) {
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

TEST(Fibers, AFiberMayWaitWhileTheStackUnwinds) {
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

TEST(Fibers, RunsTenThousandFibersAtOnce) {
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

TEST(FibersDeathTest, NoticesAStackThatOverflows) {
  EXPECT_DEATH(OverflowAStack(/*guard_pages=*/true), "");
  EXPECT_DEATH(OverflowAStack(/*guard_pages=*/false), "check failed: .*stack|AddressSanitizer");
}

}  // namespace
}  // namespace penstock::simulator
