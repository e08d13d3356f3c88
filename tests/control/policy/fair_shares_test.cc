// SPDX-License-Identifier: Apache-2.0
#include "control/policy/fair_shares.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace penstock::control {
namespace {

Claim Of(uint64_t iteration, JobShare share, int64_t partitions) {
  return {IterationId(iteration), share, partitions};
}

TEST(FairShares, APriorityCountsBeforeAllElse) {
  const Claim high = Of(2, {.priority = 1}, 100), low = Of(1, {.weight = 9}, 0);
  EXPECT_TRUE(GoesBefore(high, low));
  EXPECT_FALSE(GoesBefore(low, high));
  EXPECT_TRUE(GivesUpFor(Of(1, {.weight = 9}, 1), high));
  EXPECT_FALSE(GivesUpFor(high, low));
}

TEST(FairShares, TheFewestPartitionsPerWeightAreNextAndThenTheOldest) {
  EXPECT_TRUE(GoesBefore(Of(2, {.weight = 3}, 5), Of(1, {}, 2)));
  EXPECT_TRUE(GoesBefore(Of(1, {}, 2), Of(2, {.weight = 3}, 7)));
  EXPECT_TRUE(GoesBefore(Of(1, {}, 2), Of(2, {.weight = 3}, 6)));
  EXPECT_FALSE(GoesBefore(Of(2, {.weight = 3}, 6), Of(1, {}, 2)));
  EXPECT_FALSE(GoesBefore(Of(1, {}, 2), Of(1, {}, 2)));
}

TEST(FairShares, APartitionMovesOnlyIfThatBringsBothNearerToTheirShares) {
  EXPECT_TRUE(GivesUpFor(Of(1, {}, 2), Of(2, {}, 0)));
  EXPECT_FALSE(GivesUpFor(Of(1, {}, 1), Of(2, {}, 0)));  // it keeps its last one
  EXPECT_FALSE(GivesUpFor(Of(1, {}, 3), Of(2, {}, 2)));
  EXPECT_TRUE(GivesUpFor(Of(1, {}, 2), Of(2, {.weight = 3}, 2)));
  EXPECT_FALSE(GivesUpFor(Of(1, {}, 1), Of(2, {.weight = 3}, 3)));
}

// Moves one partition after another, as the dispatcher does, from any job that gives one up.
TEST(FairShares, MovesEndWithJobsNearTheirShares) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Claim> claims;
    int64_t partitions = 0, weights = 0;
    for (uint64_t id = 1; id <= 2 + random() % 5; ++id) {
      claims.push_back(Of(id, {.weight = 1 + static_cast<int64_t>(random() % 5)}, random() % 20));
      partitions += claims.back().partitions;
      weights += claims.back().share.weight;
    }
    for (int64_t moves = 0;; ++moves) {
      ASSERT_LE(moves, partitions);  // none goes to and fro
      const auto to = std::ranges::min_element(claims, GoesBefore);
      const auto from =
          std::ranges::find_if(claims, [&](const Claim& claim) { return GivesUpFor(claim, *to); });
      if (from == claims.end()) break;
      --from->partitions;
      ++to->partitions;
    }
    for (const Claim& claim : claims) {
      const double share =
          static_cast<double>(partitions * claim.share.weight) / static_cast<double>(weights);
      EXPECT_GT(static_cast<double>(claim.partitions) + 6, share);
      EXPECT_LT(static_cast<double>(claim.partitions), share + 6);
    }
  }
}

}  // namespace
}  // namespace penstock::control
