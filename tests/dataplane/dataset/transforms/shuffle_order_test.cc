// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/shuffle_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

namespace penstock {
namespace {

constexpr int kSeeds = 1000;

// Plays a shuffle of `count` inputs and calls `each` with every (input, output).
template <class Each>
void Play(uint64_t seed, int64_t size, int64_t count, Each each) {
  ShuffleOrder order({.seed = seed}, size);
  std::vector<int64_t> in_slot;
  while (true) {
    while (!order.Full() && order.inputs() < count) {
      order.Put();
      in_slot.assign(order.slots().begin(), order.slots().end());
    }
    if (order.Empty()) break;
    const int64_t output = order.outputs();
    const size_t slot = order.Take();
    each(in_slot[slot], output, order);
  }
  EXPECT_EQ(order.outputs(), count);
}

// Returns the distance of counts from their expected values, in standard deviations of a chi-square
// with `freedom` degrees of freedom.
double Excess(const std::vector<double>& counts, const std::vector<double>& expected,
              double freedom) {
  double chi_square = 0;
  for (size_t i = 0; i < counts.size(); ++i)
    chi_square += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}
constexpr double kBound = 4;  // exceeded by one even shuffle in some 10,000

// Plays `shuffle`, which returns the input at each output, for each seed, and counts which input
// came out where.
double ExcessOfPositions(int64_t count,
                         const std::function<std::vector<int64_t>(uint64_t seed)>& shuffle) {
  std::vector<double> seen(count * count);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::vector<int64_t> order = shuffle(seed);
    for (int64_t output = 0; output < count; ++output) ++seen[order[output] * count + output];
  }
  const std::vector<double> expected(count * count, static_cast<double>(kSeeds) / count);
  return Excess(seen, expected, static_cast<double>((count - 1) * (count - 1)));
}

std::vector<int64_t> Shuffled(uint64_t seed, int64_t size, int64_t count) {
  std::vector<int64_t> inputs;
  Play(seed, size, count,
       [&](int64_t input, int64_t, const ShuffleOrder&) { inputs.push_back(input); });
  return inputs;
}

TEST(ShuffleOrder, NothingStaysForMoreThanFourBuffers) {
  for (int64_t size : {1, 2, 3, 10}) {
    int64_t longest = 0;
    for (int64_t count : {2, 9, 25, 45, 300}) {
      for (uint64_t seed = 0; seed < 200; ++seed) {
        Play(seed, size, count, [&](int64_t input, int64_t output, const ShuffleOrder& order) {
          const int64_t entered = std::max<int64_t>(0, input - size + 1);
          longest = std::max(longest, output - entered + 1);
          ASSERT_LT(input, output + size) << "drawn before it was in the buffer";
          for (int64_t held : order.slots()) {
            if (held != ShuffleOrder::kEmpty) {
              ASSERT_GE(held, order.OldestPossible());
            }
          }
        });
      }
    }
    EXPECT_LE(longest, 4 * size);
    EXPECT_TRUE(longest == 4 * size || size == 1) << "the bound was never reached";
  }
}

TEST(ShuffleOrder, IsPlayedAgainFromTwoCounts) {
  for (int64_t size : {1, 2, 5, 16}) {
    for (int64_t count : {1, 4, 17, 40, 200}) {
      ShuffleOrder order({.seed = 9}, size);
      const auto expect_again = [&] {
        ShuffleOrder again({.seed = 9}, size);
        ASSERT_TRUE(again.PlayTo(order.outputs(), order.inputs()));
        ASSERT_EQ(again.inputs(), order.inputs());
        ASSERT_EQ(again.outputs(), order.outputs());
        ASSERT_EQ(again.slots(), order.slots());
      };
      for (int64_t output = 0; output < count; ++output) {
        while (!order.Full() && order.inputs() < count) {
          order.Put();
          expect_again();
        }
        order.Take();
        expect_again();
        // The copy also continues in the same way.
        ShuffleOrder again({.seed = 9}, size);
        ASSERT_TRUE(again.PlayTo(order.outputs(), order.inputs()));
        ShuffleOrder one = order, other = again;
        while (!one.Empty()) {
          while (!one.Full() && one.inputs() < count) ASSERT_EQ(one.Put(), other.Put());
          ASSERT_EQ(one.Take(), other.Take());
        }
      }
    }
  }
}

TEST(ShuffleOrder, IsPlayedAgainAtOnceHoweverFarItIs) {
  constexpr int64_t kFar = int64_t{1} << 60;  // step by step, this test would not end
  ShuffleOrder far({.seed = 3}, 100);
  ASSERT_TRUE(far.PlayTo(kFar, kFar + 99));
  for (int64_t held : far.slots()) {
    if (held != ShuffleOrder::kEmpty) {
      EXPECT_GE(held, far.OldestPossible());
    }
  }
  ShuffleOrder farther({.seed = 3}, 100);
  ASSERT_TRUE(farther.PlayTo(kFar + 1000, kFar + 1099));
  while (far.outputs() < farther.outputs()) {
    far.Put();
    far.Take();
  }
  EXPECT_EQ(far.slots(), farther.slots());
}

TEST(ShuffleOrder, RefusesCountsThatNoRunComesTo) {
  EXPECT_FALSE(ShuffleOrder({.seed = 9}, 5).PlayTo(3, 2)) << "more out than in";
  EXPECT_FALSE(ShuffleOrder({.seed = 9}, 5).PlayTo(1, 9)) << "more in than fit";
}

TEST(ShuffleOrder, PutsEveryElementAtEveryPlaceEquallyOften) {
  for (int64_t count : {2, 7, 20, 50}) {
    for (int64_t size : {count, 3 * count}) {
      EXPECT_LT(std::abs(ExcessOfPositions(
                    count, [&](uint64_t seed) { return Shuffled(seed, size, count); })),
                kBound)
          << count << " of " << size;
    }
  }
}

TEST(ShuffleOrder, AShuffleThatIsNotEvenWouldBeSeen) {
  // The most common mistake: every place is swapped with any place.
  const auto with_any = [](uint64_t seed) {
    std::vector<int64_t> order(20);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937_64 random(seed);
    for (int64_t& place : order) std::swap(place, order[random() % 20]);
    return order;
  };
  EXPECT_GT(ExcessOfPositions(20, with_any), 2 * kBound);
  // The buffer is too small for all inputs.
  EXPECT_GT(ExcessOfPositions(20, [](uint64_t seed) { return Shuffled(seed, 14, 20); }),
            2 * kBound);
}

// Returns the expected stays of an input put in after output `t` of a full buffer. Three of four
// outputs come from any slot, the fourth from the slot whose turn it is.
std::vector<double> ExpectedStay(int64_t t, int64_t size) {
  std::vector<double> out_after(4 * size + 1);
  const auto turn = [&](int64_t output) { return output % 4 == 3 ? output / 4 % size : -1; };
  for (int64_t slot = 0; slot < size; ++slot) {
    double there = turn(t) < 0 ? 1.0 / size : turn(t) == slot ? 1 : 0;
    for (int64_t stay = 1; stay <= 4 * size; ++stay) {
      const int64_t now = turn(t + stay);
      const double out = now < 0 ? there / size : now == slot ? there : 0;
      out_after[stay] += out;
      there -= out;
    }
  }
  return out_after;
}

TEST(ShuffleOrder, AnElementAmidAStreamStaysAsLongAsItsDrawsSay) {
  constexpr int64_t kSize = 8, kCount = 300;
  for (int64_t t : {40, 41, 42, 43, 100, 131}) {
    std::vector<double> seen(4 * kSize + 1);
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      Play(seed, kSize, kCount, [&](int64_t input, int64_t output, const ShuffleOrder&) {
        if (input == kSize + t) ++seen[output - t];
      });
    }
    std::vector<double> counts, expected;  // only of stays that are expected often enough
    for (size_t stay = 1; stay < seen.size(); ++stay) {
      const double here = ExpectedStay(t, kSize)[stay] * kSeeds;
      if (here == 0) {
        EXPECT_EQ(seen[stay], 0);
        continue;
      }
      if (counts.empty() || expected.back() >= 5) {
        counts.push_back(0);
        expected.push_back(0);
      }
      counts.back() += seen[stay];
      expected.back() += here;
    }
    EXPECT_LT(std::abs(Excess(counts, expected, static_cast<double>(counts.size() - 1))), kBound)
        << t;
  }
}

TEST(ShuffleOrder, TheFirstOfAStreamAreAllAlike) {
  // In a stream longer than the buffer, the inputs that fill it come out early or late regardless
  // of their order.
  constexpr int64_t kSize = 16, kCount = 100;
  std::vector<double> early(kSize);  // count in the first half of the buffer's outputs
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Play(seed, kSize, kCount, [&](int64_t input, int64_t output, const ShuffleOrder&) {
      if (input < kSize && output < kSize / 2) ++early[input];
    });
  }
  const double mean = std::accumulate(early.begin(), early.end(), 0.0) / kSize;
  // Draws without replacement vary less than a chi-square assumes.
  EXPECT_LT(Excess(early, std::vector<double>(kSize, mean), kSize - 1), kBound);
}

}  // namespace
}  // namespace penstock
