// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/batch_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace penstock::replica {
namespace {

using ::testing::ElementsAre;

TEST(BatchSizesTest, SevenRowsForTwoPipelinesOfTwo) {
  EXPECT_THAT(BatchSizes(7, {2, 2}), ElementsAre(ElementsAre(2, 2, 2, 1), ElementsAre(2, 1, 2, 2)));
}

TEST(BatchSizesTest, OneListForOnePipeline) {
  EXPECT_THAT(BatchSizes(4, {3}), ElementsAre(ElementsAre(2, 1, 1)));
}

// In every step the replicas of all pipelines have the global batch, and no two differ by more than
// a row. Over the whole list of steps every replica gets the large parts equally often.
TEST(BatchSizesTest, EveryStepIsAGlobalBatchInEqualParts) {
  for (const std::vector<int>& replicas :
       {std::vector<int>{1}, {4}, {1, 1}, {2, 2}, {2, 1}, {3, 1, 2}, {4, 2, 2}, {1, 1, 1, 1, 1}}) {
    const int all = std::accumulate(replicas.begin(), replicas.end(), 0);
    for (int64_t batch = 1; batch <= 20; ++batch) {
      const auto sizes = BatchSizes(batch, replicas);
      ASSERT_EQ(sizes.size(), replicas.size());
      const size_t steps = sizes[0].size() / replicas[0];
      for (size_t step = 0; step < steps; ++step) {
        std::vector<int64_t> parts;
        for (size_t n = 0; n < sizes.size(); ++n)
          for (int i = 0; i < replicas[n]; ++i) parts.push_back(sizes[n][step * replicas[n] + i]);
        EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), int64_t{0}), batch);
        EXPECT_LE(*std::max_element(parts.begin(), parts.end()),
                  *std::min_element(parts.begin(), parts.end()) + 1);
        EXPECT_EQ(parts.size(), static_cast<size_t>(all));
      }
    }
  }
}

TEST(BatchSizeOfTest, ComesFromTheSpecOrTheBatchingNode) {
  const Dataset batches = Dataset::Range(100).Batch(8);
  EXPECT_EQ(BatchSizeOf(batches), 8);
  EXPECT_EQ(BatchSizeOf(batches.Shuffle(4).Repeat(3).Prefetch(2).Take(5)), 8);
  EXPECT_EQ(BatchSizeOf(Dataset::Range(100).Batch(8, {.drop_remainder = true}).Map([](auto x) {
              return x + 1;
            })),
            8);
  EXPECT_EQ(BatchSizeOf(batches.Rebatch(5)), 5);
  EXPECT_EQ(BatchSizeOf(batches.Rebatch({5, 4})), kUnknownDim);
  EXPECT_EQ(BatchSizeOf(batches.Map([](auto x) { return x + 1; })), kUnknownDim);
  EXPECT_EQ(BatchSizeOf(Dataset::Range(100)), kUnknownDim);
}

TEST(RowsOfTest, CountsThoseOfShortBatchesToo) {
  const Dataset batches = Dataset::Range(10).Batch(4);
  EXPECT_EQ(RowsOf(batches), 10);
  EXPECT_EQ(RowsOf(batches.Repeat(3)), 30);
  EXPECT_EQ(RowsOf(batches.Repeat()), kInfinite);
  EXPECT_EQ(RowsOf(Dataset::Range(10).Batch(4, {.drop_remainder = true}).Shuffle(2)), 8);
  EXPECT_EQ(RowsOf(batches.Take(2)), kUnknown);
  EXPECT_EQ(RowsOf(Dataset::Range(10).Filter([](auto x) { return x > 3; }).Batch(2)), kUnknown);
}

TEST(StepsOfTest, CountsStepsWithRowsOrWholeOnes) {
  const std::vector<int64_t> sizes = {2, 1, 2, 2};
  EXPECT_EQ(StepsOf(7, sizes, 2, true), 2);
  EXPECT_EQ(StepsOf(4, sizes, 2, false), 2);
  EXPECT_EQ(StepsOf(4, sizes, 2, true), 1);
  EXPECT_EQ(StepsOf(0, sizes, 2, false), 0);
  EXPECT_EQ(StepsOf(70, sizes, 2, true), 20);
}

}  // namespace
}  // namespace penstock::replica
