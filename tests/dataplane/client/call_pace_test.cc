// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/call_pace.h"

#include "gtest/gtest.h"

namespace penstock::client {
namespace {

class CallPaceTest : public ::testing::Test {
 protected:
  CallPaceTest() { pace_.Look(now_); }
  // Lets a second pass, with this many calls.
  void PassSecond(int calls) {
    for (int i = 0; i < 10; ++i) {
      for (int call = i * calls / 10; call < (i + 1) * calls / 10; ++call) pace_.OnCall();
      now_ += absl::Milliseconds(100);
      pace_.Look(now_);
    }
  }

  absl::Time now_ = absl::UnixEpoch();
  CallPace pace_;
};

TEST_F(CallPaceTest, ElementsLastAsLongAsTheyDidInTheLastSecond) {
  EXPECT_EQ(pace_.TimeFor(100), absl::ZeroDuration());
  PassSecond(10);
  EXPECT_EQ(pace_.TimeFor(100), absl::Seconds(10));
  PassSecond(1000);
  EXPECT_EQ(pace_.TimeFor(100), absl::Milliseconds(100));
}

TEST_F(CallPaceTest, APauseCountsLittle) {
  PassSecond(1000);
  for (int i = 0; i < 7; ++i) PassSecond(0);
  EXPECT_LT(pace_.TimeFor(1000), absl::Seconds(2));
  PassSecond(1000);
  EXPECT_EQ(pace_.TimeFor(1000), absl::Seconds(1));
}

TEST_F(CallPaceTest, ASlowProgramIsKnownAfterAWhile) {
  PassSecond(30);
  for (int i = 0; i < 60; ++i) PassSecond(1);
  EXPECT_EQ(pace_.TimeFor(3), absl::Seconds(3));
}

}  // namespace
}  // namespace penstock::client
