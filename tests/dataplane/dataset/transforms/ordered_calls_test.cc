// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/map/ordered_calls.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace penstock {
namespace {

struct Function final : OrderedCalls::Call {
  explicit Function(std::function<void()> f) : function(std::move(f)) {}
  void Run() override { function(); }
  std::function<void()> function;
};

TEST(OrderedCalls, RunsEachOnce) {
  ThreadPool pool(3);
  OrderedCalls calls(pool, 3);
  std::atomic<int> ran = 0;
  std::vector<std::unique_ptr<Function>> functions;
  for (int i = 0; i < 1000; ++i) functions.push_back(std::make_unique<Function>([&] { ++ran; }));
  for (auto& function : functions) calls.Add(*function);
  for (auto& function : functions) calls.Await(*function);
  EXPECT_EQ(ran, 1000);
}

TEST(OrderedCalls, RunsNoMoreAtATimeThanAllowed) {
  ThreadPool pool(4);
  OrderedCalls calls(pool, 2);
  std::atomic<int> running = 0;
  std::atomic<bool> too_many = false;
  std::vector<std::unique_ptr<Function>> functions;
  for (int i = 0; i < 500; ++i) {
    functions.push_back(std::make_unique<Function>([&] {
      if (++running > 2) too_many = true;
      --running;
    }));
  }
  for (auto& function : functions) calls.Add(*function);
  for (auto& function : functions) calls.Await(*function);
  EXPECT_FALSE(too_many);
}

TEST(OrderedCalls, AWaitingThreadHelpsABusyPool) {
  ThreadPool pool(1);
  std::latch release(1);
  pool.Post([&] { release.wait(); });
  OrderedCalls calls(pool, 2);
  bool ran = false;
  Function function([&] { ran = true; });
  calls.Add(function);
  calls.Await(function);  // this would hang if only the pool could run it
  EXPECT_TRUE(ran);
  release.count_down();
}

// A later call may take long, and the awaited one may be done meanwhile.
TEST(OrderedCalls, WaitingForARunningCallRunsNoLaterOne) {
  for (int i = 0; i < 1000; ++i) {
    ThreadPool pool(1);
    std::latch begun(1), release(1);
    Function first([&] {
      begun.count_down();
      release.wait();
    });
    std::atomic<std::thread::id> ran_by;
    Function second([&] { ran_by = std::this_thread::get_id(); });
    OrderedCalls calls(pool, 2);
    calls.Add(first);
    begun.wait();
    calls.Add(second);
    const std::jthread releases([&] { release.count_down(); });
    calls.Await(first);
    ASSERT_NE(ran_by.load(), std::this_thread::get_id());
    calls.Await(second);
  }
}

TEST(OrderedCalls, EndingWaitsForRunningCalls) {
  ThreadPool pool(1);
  std::latch begun(1), release(1);
  std::atomic<bool> ended = false;
  Function call([&] {
    begun.count_down();
    release.wait();
    ended = true;
  });
  std::jthread later;
  {
    OrderedCalls calls(pool, 1);
    calls.Add(call);
    begun.wait();
    later = std::jthread([&] { release.count_down(); });
  }
  EXPECT_TRUE(ended);
}

TEST(OrderedCalls, EndingDropsCallsThatHaveNotBegun) {
  ThreadPool pool(1);
  std::latch release(1);
  pool.Post([&] { release.wait(); });
  bool ran = false;
  Function call([&] { ran = true; });
  {
    OrderedCalls calls(pool, 1);
    calls.Add(call);
  }
  release.count_down();
  std::latch idle(1);
  pool.Post([&] { idle.count_down(); });  // after any task that was posted for the call
  idle.wait();
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace penstock
