// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/index_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace penstock {
namespace {

IndexSet Make(std::initializer_list<IndexSet::Interval> intervals) {
  IndexSet set;
  for (const auto& i : intervals) set.Add(i.begin, i.end);
  return set;
}

TEST(IndexSet, JoinsIntervalsThatTouch) {
  IndexSet set;
  set.Add(0);
  set.Add(2);
  EXPECT_EQ(set.ToString(), "[0,1) [2,3)");
  set.Add(1);
  EXPECT_EQ(set.ToString(), "[0,3)");
}

TEST(IndexSet, RemovesTheMiddleOfAnInterval) {
  IndexSet set = IndexSet::Of(0, 10);
  set.Remove(Make({{2, 3}, {5, 7}, {9, 20}}));
  EXPECT_EQ(set, Make({{0, 2}, {3, 5}, {7, 9}}));
}

TEST(IndexSet, NamesTheFirstThatIsMissing) {
  const IndexSet set = Make({{0, 3}, {4, 6}});
  EXPECT_EQ(set.FirstMissing(), 3);
  EXPECT_EQ(set.FirstMissing(4), 6);
  EXPECT_EQ(IndexSet{}.FirstMissing(), 0);
}

TEST(IndexSet, ContainsASetOnlyIfAllOfIt) {
  const IndexSet set = Make({{0, 3}, {4, 6}});
  EXPECT_TRUE(set.Contains(Make({{1, 2}, {4, 6}})));
  EXPECT_FALSE(set.Contains(Make({{1, 5}})));
  EXPECT_TRUE(set.Intersects(Make({{3, 5}})));
  EXPECT_FALSE(set.Intersects(Make({{3, 4}, {6, 9}})));
}

TEST(IndexSet, AgreesWithASetOfNumbersInAnyOrderOfChanges) {
  std::mt19937 random(7);
  auto draw = [&](int n) { return static_cast<Index>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 200; ++round) {
    IndexSet set;
    std::set<Index> numbers;
    for (int change = 0; change < 40; ++change) {
      const Index begin = draw(30), end = begin + draw(6);
      if (draw(3) == 0) {
        set.Remove(IndexSet::Of(begin, end));
        for (Index i = begin; i < end; ++i) numbers.erase(i);
      } else {
        set.Add(begin, end);
        for (Index i = begin; i < end; ++i) numbers.insert(i);
      }
      ASSERT_EQ(set.size(), static_cast<int64_t>(numbers.size()));
      for (Index i = 0; i < 40; ++i) ASSERT_EQ(set.Contains(i), numbers.contains(i));
    }
  }
}

}  // namespace
}  // namespace penstock
