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

TEST(IndexSet, AddsAndRemovesWholeSets) {
  std::mt19937 random(11);
  auto draw = [&](int n) { return static_cast<Index>(random() % static_cast<unsigned>(n)); };
  auto draw_set = [&](int intervals) {
    IndexSet set;
    for (int i = 0; i < intervals; ++i) {
      const Index begin = draw(60);
      set.Add(begin, begin + draw(5));
    }
    return set;
  };
  for (int round = 0; round < 2000; ++round) {
    const IndexSet a = draw_set(static_cast<int>(draw(12)));
    const IndexSet b = draw_set(static_cast<int>(draw(12)));
    IndexSet sum = a, difference = a, sum_expected, difference_expected;
    sum.Add(b);
    difference.Remove(b);
    bool intersects = false;
    for (Index i = 0; i < 70; ++i) {
      if (a.Contains(i) || b.Contains(i)) sum_expected.Add(i);
      if (a.Contains(i) && !b.Contains(i)) difference_expected.Add(i);
      intersects |= a.Contains(i) && b.Contains(i);
    }
    ASSERT_EQ(sum, sum_expected) << a.ToString() << " and " << b.ToString();
    ASSERT_EQ(difference, difference_expected) << a.ToString() << " less " << b.ToString();
    ASSERT_EQ(a.Intersects(b), intersects) << a.ToString() << " and " << b.ToString();
  }
}

TEST(IndexSet, IsItsOwnSumAndLeavesNothingOfItself) {
  IndexSet set = Make({{0, 3}, {4, 6}, {8, 9}});
  const IndexSet before = set;
  set.Add(set);
  EXPECT_EQ(set, before);
  set.Remove(set);
  EXPECT_TRUE(set.empty());
}

// Two readers with alternating indices: in quadratic time this would take minutes.
TEST(IndexSet, JoinsTwoThatInterleaveInLinearTime) {
  IndexSet even, odd;
  constexpr Index kIndices = 2'000'000;
  for (Index i = 0; i < kIndices; i += 2) even.Add(i);
  for (Index i = 1; i < kIndices; i += 2) odd.Add(i);
  IndexSet both = even;
  both.Add(odd);
  EXPECT_EQ(both, IndexSet::Of(0, kIndices));
  both.Remove(odd);
  EXPECT_EQ(both, even);
}

}  // namespace
}  // namespace penstock
