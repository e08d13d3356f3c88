// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/recall_pace.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace penstock::client {
namespace {

constexpr bool kNeeds = true;
constexpr bool kNeedsNone = false;

class RecallPaceTest : public testing::Test {
 protected:
  // Passes this time; an element comes each `gap`. Returns how many looks there were.
  int LooksIn(absl::Duration time, bool needs, absl::Duration gap = absl::InfiniteDuration()) {
    int looks = 0;
    absl::Time element = now_ + gap;
    for (const absl::Time end = now_ + time; now_ < end;) {
      if (now_ >= element) {
        pace_.OnReceived();
        element += gap;
      }
      const absl::Time next = pace_.Next(now_, needs);
      if (next <= now_) {
        pace_.OnLook(now_);
        ++looks;
        continue;
      }
      now_ = std::min({next, element, now_ + kLongestSleep});
    }
    return looks;
  }
  // Returns the time until the next look.
  absl::Duration Pause(bool needs) { return pace_.Next(now_, needs) - now_; }

  static constexpr absl::Duration kLongestSleep = absl::Milliseconds(50);
  RecallPace pace_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

TEST_F(RecallPaceTest, LooksSoonWhileElementsCome) {
  const int looks = LooksIn(absl::Seconds(1), kNeeds, absl::Milliseconds(2));
  EXPECT_GE(looks, 400);
  EXPECT_LE(looks, 1100);
  EXPECT_FALSE(pace_.late());
}

TEST_F(RecallPaceTest, LooksOnceASecondWhileManyElementsAreHeld) {
  LooksIn(absl::Seconds(2), kNeedsNone, absl::Milliseconds(2));
  EXPECT_LE(LooksIn(absl::Minutes(1), kNeedsNone, absl::Milliseconds(2)), 61);
  EXPECT_TRUE(pace_.late());
}

TEST_F(RecallPaceTest, LooksSoonOnceElementsAreNeededAgain) {
  LooksIn(absl::Minutes(1), kNeedsNone, absl::Milliseconds(100));
  EXPECT_LE(Pause(kNeeds), absl::Milliseconds(4));
}

TEST_F(RecallPaceTest, DelaysNoElementByMoreThanAPartOfTheWaitForIt) {
  LooksIn(absl::Seconds(1), kNeeds, absl::Milliseconds(2));
  for (absl::Duration waited = absl::Milliseconds(64); waited < absl::Minutes(1); waited *= 1.25) {
    EXPECT_GE(LooksIn(waited / 4, kNeeds), 1) << waited;
  }
  EXPECT_LE(LooksIn(absl::Minutes(1), kNeeds), 60) << "where nothing comes for minutes";
}

TEST_F(RecallPaceTest, LooksSoonBeforeTheFirstElement) {
  EXPECT_GE(LooksIn(absl::Milliseconds(64), kNeeds), 64 / 4);
}

TEST_F(RecallPaceTest, CostsAFewLooksForEachRareElement) {
  LooksIn(absl::Minutes(1), kNeeds, absl::Seconds(2));
  EXPECT_LE(LooksIn(absl::Minutes(1), kNeeds, absl::Seconds(2)), 30 * 30);
}

}  // namespace
}  // namespace penstock::client
