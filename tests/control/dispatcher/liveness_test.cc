// SPDX-License-Identifier: Apache-2.0
// Which heartbeats renew a client's lease, next to a sweep that finds the lease expired.
#include "control/dispatcher/liveness.h"

#include <atomic>
#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LivenessTest : public ::testing::Test {
 protected:
  LivenessTest() {
    options_.now = [this] { return now_; };
  }

  void Join(uint64_t stream) {
    session_ = {.key = kKey, .stream = stream};
    liveness_.Joined(kKey, stream);
  }
  bool Beats() { return liveness_.OnHeartbeat(session_, ++counter_).has_value(); }

  static constexpr SessionKey kKey{IterationId(1), ClientId(2)};
  CoreOptions options_;
  absl::Time now_ = absl::UnixEpoch();
  std::atomic<uint64_t> durable_ = 0;
  const SharedState shared_{options_, durable_};
  Liveness liveness_{shared_};
  HeartbeatSession session_;
  uint64_t counter_ = 0;
};

TEST_F(LivenessTest, ALeaseThatIsRenewedIsNotTaken) {
  Join(1);
  now_ += options_.client_timeout;
  EXPECT_THAT(liveness_.ExpiredClients(now_), ElementsAre(kKey));
  EXPECT_TRUE(Beats());
  EXPECT_FALSE(liveness_.TakeExpired(kKey, now_));
  EXPECT_THAT(liveness_.ExpiredClients(now_), IsEmpty());
}

TEST_F(LivenessTest, ALeaseThatIsTakenIsNotRenewed) {
  Join(1);
  now_ += options_.client_timeout;
  EXPECT_TRUE(liveness_.TakeExpired(kKey, now_));
  EXPECT_FALSE(Beats());
  liveness_.Forget(kKey);
  EXPECT_FALSE(Beats());
  Join(2);
  EXPECT_TRUE(Beats());
}

TEST_F(LivenessTest, OnlyTheLastStreamRenewsTheLease) {
  EXPECT_FALSE(Beats()) << "there was no hello";
  Join(1);
  HeartbeatSession earlier = session_;
  Join(2);
  EXPECT_FALSE(liveness_.OnHeartbeat(earlier, 7).has_value());
  liveness_.OnStreamOver(kKey, 1);
  EXPECT_TRUE(Beats());
  liveness_.OnStreamOver(kKey, 2);
  EXPECT_FALSE(Beats());
  EXPECT_EQ(liveness_.SilenceOf(kKey, now_ + absl::Seconds(3)), absl::Seconds(3));
}

}  // namespace
}  // namespace penstock::control
