// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/recall_pace.h"

#include <algorithm>
#include <cstdint>

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
      const absl::Time next = pace_.Plan(now_, needs, turns_);
      if (next <= now_) {
        pace_.OnLook(now_);
        ++looks;
        continue;
      }
      now_ = std::min({next, element, now_ + kLongestSleep});
    }
    return looks;
  }
  absl::Duration TimeToNext(bool needs) { return pace_.Plan(now_, needs, turns_) - now_; }
  // Returns after how long a worker that has an element from now on is asked, as its turn is the
  // last.
  absl::Duration Delay() {
    const absl::Time from = now_;
    for (int64_t looks = 0; looks < turns_;) looks += LooksIn(absl::Milliseconds(1), kNeeds);
    return now_ - from;
  }

  static constexpr absl::Duration kLongestSleep = absl::Milliseconds(50);
  RecallPace pace_;
  int64_t turns_ = 2;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

TEST_F(RecallPaceTest, LooksSoonWhileElementsCome) {
  const int looks = LooksIn(absl::Seconds(1), kNeeds, absl::Milliseconds(2));
  EXPECT_GE(looks, 400);
  EXPECT_LE(looks, 1100);
}

TEST_F(RecallPaceTest, LooksOnceASecondWhileNoneIsNeeded) {
  LooksIn(absl::Seconds(2), kNeedsNone, absl::Milliseconds(2));
  const int looks = LooksIn(absl::Minutes(1), kNeedsNone, absl::Milliseconds(2));
  EXPECT_GE(looks, 59);
  EXPECT_LE(looks, 61);
  EXPECT_TRUE(pace_.may_be_late());
}

TEST_F(RecallPaceTest, LooksSoonOnceElementsAreNeededAgain) {
  LooksIn(absl::Minutes(1), kNeedsNone, absl::Milliseconds(100));
  EXPECT_LE(TimeToNext(kNeeds), absl::Milliseconds(1));
  EXPECT_FALSE(pace_.may_be_late());
  EXPECT_GE(LooksIn(absl::Milliseconds(64), kNeeds), 64 / 4);
}

TEST_F(RecallPaceTest, LooksSoonAtFirstAndAfterATimeWithoutNeedOfCredits) {
  EXPECT_GE(LooksIn(absl::Milliseconds(64), kNeeds), 64 / 4);
  now_ += absl::Hours(1);
  pace_.OnReceived();
  pace_.OnRest(now_);
  EXPECT_GE(LooksIn(absl::Milliseconds(64), kNeeds), 64 / 4 - 1);
}

TEST_F(RecallPaceTest, DelaysAnElementByAPartOfTheWaitForItHoweverManyTurnsThereAre) {
  for (const int64_t turns : {2, 32, 128}) {
    turns_ = turns;
    pace_.OnRest(now_);
    const absl::Duration fastest = turns * absl::Milliseconds(4);
    for (absl::Duration waited = absl::Milliseconds(500); waited < absl::Minutes(1); waited *= 2) {
      pace_.OnReceived();
      LooksIn(waited, kNeeds);
      EXPECT_LE(Delay(), fastest + waited / 6) << turns << " turns, " << waited;
    }
  }
}

TEST_F(RecallPaceTest, LooksSeldomWhereNothingComesForMinutes) {
  LooksIn(absl::Minutes(2), kNeeds);
  EXPECT_LE(LooksIn(absl::Minutes(1), kNeeds), 61);
}

}  // namespace
}  // namespace penstock::client
