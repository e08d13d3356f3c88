// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/budget.h"

#include <chrono>
#include <future>
#include <stop_token>

#include "gtest/gtest.h"

namespace penstock::worker {
namespace {

TEST(Budget, WaitsUntilSentElementsAreReceived) {
  Budget budget(100);
  budget.Add(60);
  EXPECT_FALSE(budget.exhausted());
  budget.Add(60);  // a soft limit: a finished element may be sent
  EXPECT_TRUE(budget.exhausted());
  auto goes_on = std::async(std::launch::async, [&] { budget.Wait({}); });
  EXPECT_EQ(goes_on.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  budget.Subtract(60);
  goes_on.get();
  EXPECT_EQ(budget.used(), 60);
}

TEST(Budget, AWaitIsCancelled) {
  Budget budget(1);
  budget.Add(1);
  std::stop_source stop;
  auto ends = std::async(std::launch::async, [&] { budget.Wait(stop.get_token()); });
  stop.request_stop();
  ends.get();
  EXPECT_TRUE(budget.exhausted());
}

}  // namespace
}  // namespace penstock::worker
