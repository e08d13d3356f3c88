// SPDX-License-Identifier: Apache-2.0
// The output of Iterator::Stats() for a dataset that was read.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "penstock/dataset.h"

namespace penstock {
namespace {

void ReadToTheEnd(Iterator& iterator) {
  while (true) {
    const absl::StatusOr<std::optional<Element>> next = iterator.Next();
    if (next.ok() && !next->has_value()) return;
  }
}

NodeStats StatsOf(const Iterator& iterator, const std::string& op) {
  for (const NodeStats& node : iterator.Stats().nodes)
    if (node.node.substr(0, node.node.find('#')) == op) return node;
  ADD_FAILURE() << "no node " << op;
  return {};
}

TEST(Profile, CountsElementsAndBytesOfEachNode) {
  Iterator it =
      *Dataset::Range(1000).Filter([](Expr x) { return x % 4 == 0; }).Batch(10).MakeIterator();
  ReadToTheEnd(it);
  EXPECT_EQ(StatsOf(it, "Range").elements, 1000);
  EXPECT_EQ(StatsOf(it, "Filter").elements, 250);
  EXPECT_EQ(StatsOf(it, "Batch").elements, 25);
  EXPECT_GE(StatsOf(it, "Batch").bytes, 25 * 10 * 8);
}

TEST(Profile, AnErrorInAnElementsPlaceCounts) {
  Iterator it = *Dataset::Range(5).Map([](Expr x) { return Expr(12) / x; }).MakeIterator();
  ReadToTheEnd(it);
  EXPECT_EQ(StatsOf(it, "Map").elements, 5);
}

TEST(Profile, AMapFusedIntoItsBatchIsStillCounted) {
  Iterator it = *Dataset::Range(100).Map([](Expr x) { return x * 2; }).Batch(10).MakeIterator();
  ReadToTheEnd(it);
  EXPECT_EQ(StatsOf(it, "Map").elements, 100);
  EXPECT_GE(StatsOf(it, "Map").parallelism, 1);
}

TEST(Profile, WorkIsBookedToTheNodeThatDoesIt) {
  const std::vector<double> values(100'000, 1.0);
  const int64_t dims[] = {100'000};
  Iterator it =
      *Dataset::FromTensors({Tensor(kFloat64, dims, values.data())}, Dense(kFloat64, {100'000}))
           .Repeat(50)
           .Map([](Expr x) { return x * x * x * x; }, {.num_parallel_calls = 1})
           .Take(50)
           .MakeIterator();
  ReadToTheEnd(it);
  EXPECT_GT(StatsOf(it, "Map").busy, StatsOf(it, "Take").busy);
  EXPECT_GT(StatsOf(it, "Map").busy, StatsOf(it, "Repeat").busy);
}

TEST(Profile, EachElementOfABodyCounts) {
  Iterator it =
      *Dataset::Range(10).FlatMap([](Expr x) { return Dataset::Range(x); }).MakeIterator();
  ReadToTheEnd(it);
  EXPECT_EQ(StatsOf(it, "FlatMap").elements, 45);
}

}  // namespace
}  // namespace penstock
