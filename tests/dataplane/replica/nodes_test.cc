// SPDX-License-Identifier: Apache-2.0
// The nodes that cut batches and divide files, with their positions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataplane/replica/cut_batch.h"
#include "penstock/penstock.h"

namespace penstock::replica {
namespace {

using Rows = std::vector<int64_t>;

std::vector<Rows> ReadAll(Iterator& it) {
  std::vector<Rows> all;
  while (true) {
    absl::StatusOr<std::optional<Element>> next = it.Next();
    if (!next.ok()) {
      all.push_back({-1});
      continue;
    }
    if (!next->has_value()) return all;
    const auto values = (**next).tensor(0).data<int64_t>();
    all.emplace_back(values.begin(), values.end());
  }
}

TEST(CutBatchTest, GivesItsPartsOfEachBatch) {
  const Dataset cut = CutBatch(Dataset::Range(9).Batch(5), {.parts = 3, .first = 1, .count = 2});
  EXPECT_EQ(cut.cardinality(), 4);
  absl::StatusOr<Iterator> it = cut.MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  EXPECT_EQ(ReadAll(*it), (std::vector<Rows>{{2, 3}, {4}, {7}, {8}}));
}

TEST(CutBatchTest, LeavesOutBatchesThatAreNotWhole) {
  const Dataset cut = CutBatch(Dataset::Range(7).Batch(5).Repeat(2),
                               {.parts = 2, .first = 0, .count = 1, .whole_rows = 5});
  absl::StatusOr<Iterator> it = cut.MakeIterator();
  EXPECT_EQ(ReadAll(*it), (std::vector<Rows>{{0, 1, 2}, {0, 1, 2}}));
}

TEST(CutBatchTest, AnErrorStandsInThePlaceOfEachPart) {
  const Dataset numbers = Dataset::FromTensorSlices<std::string>({"1", "2", "x", "4"})
                              .Map([](auto line) { return StringToNumber(line, kInt64); })
                              .Batch(2);
  absl::StatusOr<Iterator> it =
      CutBatch(numbers, {.parts = 2, .first = 0, .count = 2}).MakeIterator();
  EXPECT_EQ(ReadAll(*it), (std::vector<Rows>{{1}, {2}, {-1}, {-1}}));
}

TEST(CutBatchTest, GoesOnAfterAnyPart) {
  const Dataset cut =
      CutBatch(Dataset::Range(17).Shuffle(5).Batch(6), {.parts = 4, .first = 0, .count = 3});
  absl::StatusOr<Iterator> it = cut.MakeIterator();
  std::vector<State> states;
  std::vector<Rows> all;
  while (true) {
    states.push_back(*it->Save());
    absl::StatusOr<std::optional<Element>> next = it->Next();
    ASSERT_TRUE(next.ok()) << next.status();
    if (!next->has_value()) break;
    const auto values = (**next).tensor(0).data<int64_t>();
    all.emplace_back(values.begin(), values.end());
  }
  EXPECT_EQ(all.size(), 9u);
  for (size_t from = 0; from < states.size(); ++from) {
    absl::StatusOr<Iterator> other = cut.MakeIterator();
    ASSERT_TRUE(other->Restore(states[from]).ok());
    EXPECT_EQ(ReadAll(*other), std::vector<Rows>(all.begin() + from, all.end())) << from;
  }
}

}  // namespace
}  // namespace penstock::replica
