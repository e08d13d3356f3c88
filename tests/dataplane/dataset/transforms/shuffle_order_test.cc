// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/shuffle_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace penstock {
namespace {

// Plays a shuffle of `count` inputs; `each` gets (input, output) for every one.
template <class Each>
void Play(uint64_t seed, int64_t size, int64_t count, Each each) {
  ShuffleOrder order({.seed = seed}, size);
  size_t from, to;
  while (true) {
    while (!order.Full() && order.inputs() < count) order.Put();
    order.Compact(from, to);
    if (order.Empty()) break;
    const int64_t output = order.outputs();
    each(order.slots()[order.Take()], output, order);
  }
  EXPECT_EQ(order.outputs(), count);
}

TEST(ShuffleOrder, NothingStaysForMoreThanFourBuffers) {
  for (int64_t size : {1, 2, 3, 10}) {
    bool forced = false;
    for (uint64_t seed = 0; seed < 200; ++seed) {
      Play(seed, size, 300, [&](int64_t input, int64_t output, const ShuffleOrder& order) {
        const int64_t entered = std::max<int64_t>(0, input - size + 1);
        ASSERT_LE(output - entered + 1, 4 * size);
        ASSERT_LT(input, output + size) << "drawn before it was in the buffer";
        ASSERT_GE(input, order.OldestPossible() - 1);
        forced = forced || output == input + 3 * size;
      });
    }
    EXPECT_TRUE(forced || size == 1) << "the bound was never reached: this shows nothing";
  }
}

TEST(ShuffleOrder, IsPlayedAgainFromTwoCounts) {
  const int64_t size = 5, count = 40;
  ShuffleOrder order({.seed = 9}, size);
  size_t from, to;
  for (int64_t output = 0; output < count; ++output) {
    while (!order.Full() && order.inputs() < count) order.Put();
    order.Compact(from, to);
    order.Take();
    ShuffleOrder again({.seed = 9}, size);
    ASSERT_TRUE(again.PlayTo(order.outputs(), order.inputs()));
    ASSERT_EQ(again.free_place(), order.free_place());
    for (size_t slot = 0; slot < order.slots().size(); ++slot) {
      if (static_cast<int64_t>(slot) == order.free_place()) continue;
      ASSERT_EQ(again.slots()[slot], order.slots()[slot]);
    }
  }
  EXPECT_FALSE(ShuffleOrder({.seed = 9}, size).PlayTo(3, 2)) << "more out than in";
  EXPECT_FALSE(ShuffleOrder({.seed = 9}, size).PlayTo(1, 9)) << "more in than fit";
}

TEST(ShuffleOrder, DrawsEvenly) {
  // Where the first of four lands, over many seeds: a quarter each.
  std::map<int64_t, int> places;
  constexpr int kSeeds = 8000;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Play(seed, 4, 4, [&](int64_t input, int64_t output, const ShuffleOrder&) {
      if (input == 0) ++places[output];
    });
  }
  for (int64_t place = 0; place < 4; ++place) EXPECT_NEAR(places[place], kSeeds / 4, 200);
}

}  // namespace
}  // namespace penstock
