// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/lease.h"

#include "gtest/gtest.h"

namespace penstock::client {
namespace {

absl::Time At(double seconds) {
  return absl::FromUnixSeconds(1000) + absl::Seconds(seconds);
}

class LeaseTest : public testing::Test {
 protected:
  // Of 20 s, from second 0 on.
  LeaseTest() {
    lease_.OnHello(At(0));
    lease_.OnWelcome({.heartbeat_interval = absl::Seconds(1), .lease = absl::Seconds(20)});
  }
  Lease lease_;
};

TEST_F(LeaseTest, RunsFromTheSendingOfTheLastAnsweredHeartbeat) {
  EXPECT_TRUE(lease_.Holds(At(19.9)));
  EXPECT_FALSE(lease_.Holds(At(20)));
  const uint64_t answered = lease_.Beat(At(5));
  const uint64_t late = lease_.Beat(At(6));
  EXPECT_FALSE(lease_.Holds(At(20)));
  lease_.OnAnswer(answered);
  EXPECT_TRUE(lease_.Holds(At(24.9)));
  EXPECT_FALSE(lease_.Holds(At(25)));
  lease_.OnAnswer(late);
  EXPECT_TRUE(lease_.Holds(At(25.9)));
  lease_.OnAnswer(answered);  // again, and out of order
  EXPECT_TRUE(lease_.Holds(At(25.9)));
}

// The dispatcher's clock counts 20 s while this one counts 19.98 s.
TEST_F(LeaseTest, IsOverWhenAFasterClockHasCountedItsLength) {
  EXPECT_TRUE(lease_.Holds(At(19.97)));
  EXPECT_FALSE(lease_.Holds(At(20 / 1.001)));
}

}  // namespace
}  // namespace penstock::client
