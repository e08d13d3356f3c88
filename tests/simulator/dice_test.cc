// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/engine/dice.h"

#include <cstdint>
#include <set>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::simulator {
namespace {

using ::testing::ElementsAre;

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

}  // namespace
}  // namespace penstock::simulator
