// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/budget.h"

#include <atomic>
#include <future>
#include <mutex>

#include "gtest/gtest.h"

namespace penstock::worker {
namespace {

TEST(Budget, WaitsUntilSentElementsAreReceived) {
  Budget budget(100);
  budget.Add(60);
  EXPECT_FALSE(budget.exhausted());
  budget.Add(60);  // a soft limit: a finished element may be sent
  EXPECT_TRUE(budget.exhausted());
  std::promise<void> waits;
  auto goes_on = std::async(std::launch::async, [&] {
    budget.Wait([&] {
      static std::once_flag once;
      std::call_once(once, [&] { waits.set_value(); });
      return false;
    });
  });
  waits.get_future().wait();
  budget.Subtract(60);
  goes_on.get();
  EXPECT_EQ(budget.used(), 60);
}

TEST(Budget, AWaitIsCancelled) {
  Budget budget(1);
  budget.Add(1);
  std::atomic<bool> cancelled = false;
  auto ends =
      std::async(std::launch::async, [&] { budget.Wait([&] { return cancelled.load(); }); });
  cancelled = true;
  budget.Wake();
  ends.get();
  EXPECT_TRUE(budget.exhausted());
}

}  // namespace
}  // namespace penstock::worker
