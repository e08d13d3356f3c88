// SPDX-License-Identifier: Apache-2.0
// Random orders and division: for any number of partitions and any seed, the partitions are
// together the dataset.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/dataplane/dataset/suite.h"

namespace penstock::suite {
namespace {

void ExpectPartitionsAreTheWhole(const Dataset& dataset) {
  ASSERT_TRUE(dataset.status().ok()) << dataset.status();
  const absl::StatusOr<SplitPlan> plan = PlanSplits(dataset, TestFiles());
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> whole = Reading(dataset, {}).Rest(1000);
  std::sort(whole.begin(), whole.end());
  ASSERT_FALSE(whole.empty());
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const int partitions = static_cast<int>(seed % 7) + 1;
    std::vector<std::string> together;
    for (int partition = 1; partition <= partitions; ++partition) {
      Reading reading(dataset, {.seed = seed,
                                .threads = 1,
                                .plan = &*plan,
                                .partitions = partitions,
                                .partition = partition,
                                .split_seed = seed});
      for (std::string& element : reading.Rest(1000)) together.push_back(std::move(element));
    }
    std::sort(together.begin(), together.end());
    ASSERT_EQ(together, whole) << partitions << " partitions, seed " << seed;
  }
}

TEST(Partitions, OfAShuffleAreTheWhole) {
  ExpectPartitionsAreTheWhole(Dataset::Range(60).Shuffle(8));
}

TEST(Partitions, OfShuffledEpochsAreTheWhole) {
  ExpectPartitionsAreTheWhole(Dataset::Range(20).Shuffle(8).Repeat(3).Shuffle(5));
}

TEST(Partitions, OfShuffledFilesAreTheWhole) {
  ExpectPartitionsAreTheWhole(Dataset::ListFiles("/data/*.tfrecord", {.shuffle = true})
                                  .Interleave(Dataset::TFRecord, {.cycle_length = 2})
                                  .Shuffle(4));
}

}  // namespace
}  // namespace penstock::suite
