// SPDX-License-Identifier: Apache-2.0
// Rounds, and the buckets of costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "dataplane/dataset/transforms/window/cost_buckets.h"
#include "include/status_macros.h"
#include "penstock/register.h"
#include "tests/dataplane/dataset/transforms/text_of.h"
#include "tests/dataplane/dataset/transforms/vectors.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Expr Tens(const Expr& x) {
  return x / 10;
}

absl::Status NotSeven(CallContext& call) {
  const int64_t x = call.inputs()[0].scalar<int64_t>();
  if (x == 7) return absl::InvalidArgumentError("7 is not liked");
  ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, {}));
  out[0] = x;
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("rounds.not_seven", 1, Scalar(kInt64), NotSeven);

TEST(Rounds, AreOfOneBucketEach) {
  const Dataset dataset = Numbers({1, 11, 2, 21, 12, 3, 22, 13}).Rounds(2, {.bucket = Tens});
  EXPECT_EQ(dataset.element_spec(), Spec(Scalar(kInt64)));
  EXPECT_EQ(dataset.cardinality(), 8);
  EXPECT_THAT(ReadAll(dataset), ElementsAre("1", "2", "11", "12", "21", "22", "3", "13"));
}

TEST(Rounds, OfTheRestAreOfNeighbours) {
  const Dataset dataset = Numbers({41, 1, 31, 11, 42, 21}).Rounds(4, {.bucket = Tens});
  EXPECT_THAT(ReadAll(dataset), ElementsAre("1", "11", "21", "31", "41", "42"));
}

TEST(Rounds, AnErrorTakesAPlaceInTheNextRoundAndSparesTheOthers) {
  const Dataset dataset = Numbers({1, 2, 7, 11, 12, 13, 14, 15, 16})
                              .Map([](Expr x) { return Call("rounds.not_seven", x); })
                              .Rounds(3, {.bucket = Tens});
  const std::vector<std::string> all = ReadAll(dataset);
  ASSERT_EQ(all.size(), 9);
  EXPECT_THAT(all[0], HasSubstr("7 is not liked"));
  EXPECT_THAT(std::vector(all.begin() + 1, all.end()),
              ElementsAre("1", "2", "11", "12", "13", "14", "15", "16"));
}

TEST(Rounds, TooOldElementsGoWithTheirNeighbours) {
  // 51 waits while four rounds of other buckets pass.
  const Dataset dataset =
      Numbers({51, 1, 2, 3, 4, 41, 5, 6, 52, 7}).Rounds(2, {.bucket = Tens, .max_age = 4});
  EXPECT_THAT(ReadAll(dataset), ElementsAre("1", "2", "3", "4", "51", "41", "5", "6", "7", "52"));
}

TEST(Rounds, OfCostSpreadNoFurtherThanAsked) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 4000; ++i) lengths.push_back(16 + i * i % 1009);
  const Dataset dataset = Numbers(lengths).Rounds(
      4, {.cost = [](Expr n) { return Cast(n, kFloat64) * 0.5 + Cast(n * n, kFloat64) * 0.01; }});
  const std::vector<std::string> all = ReadAll(dataset, {.limit = 5000});
  ASSERT_EQ(all.size(), 4000);
  int64_t wide = 0;
  for (size_t r = 0; r + 4 <= all.size(); r += 4) {
    double least = INFINITY, most = 0;
    for (size_t i = r; i < r + 4; ++i) {
      const double n = std::stod(all[i]);
      least = std::min(least, n * 0.5 + n * n * 0.01);
      most = std::max(most, n * 0.5 + n * n * 0.01);
    }
    if (most > 1.05 * least) ++wide;
  }
  // At most 112 buckets leave remainders of 3 elements each, which make rounds of neighbours.
  EXPECT_LE(wide, 112 * 3 / 4);
  EXPECT_THAT(dataset.Explain(), HasSubstr("15 buckets for each doubling of the cost"));
}

TEST(Rounds, ACostThatIsNoneIsAnErrorInItsPlace) {
  const Dataset dataset = Numbers({4, -1, 4}).Rounds(3, {.cost = [](Expr x) { return x; }});
  const std::vector<std::string> all = ReadAll(dataset);
  ASSERT_EQ(all.size(), 3);
  EXPECT_THAT(all[0], HasSubstr("cost returned -1, but costs must be finite and 0 or more"));
}

TEST(Rounds, MistakesNameTheirArgument) {
  const Dataset some = Numbers({1});
  EXPECT_THAT(Mistake(some.Rounds(0, {.bucket = Tens})), HasSubstr("num_consumers must be in"));
  EXPECT_THAT(Mistake(some.Rounds(2, {})), HasSubstr("one of bucket and cost"));
  EXPECT_THAT(Mistake(some.Rounds(2, {.bucket = Tens, .cost = Tens})),
              HasSubstr("one of bucket and cost"));
  EXPECT_THAT(Mistake(some.Rounds(2, {.cost = Tens, .cost_spread = 0})),
              HasSubstr("cost_spread must be in"));
  EXPECT_THAT(Mistake(some.Rounds(2, {.bucket = Tens, .max_age = -1})),
              HasSubstr("max_age must be 0 or more"));
  EXPECT_THAT(Mistake(some.Rounds(2, {.bucket = [](Expr x) { return Cast(x, kFloat32); }})),
              HasSubstr("bucket must return an int32 or int64 scalar"));
  EXPECT_THAT(Mistake(some.Rounds(2, {.cost = [](Expr x) { return x > 1; }})),
              HasSubstr("cost must return"));
}

TEST(CostBuckets, HoldCostsNoFurtherApartThanTheSpread) {
  for (const double spread : {0.001, 0.05, 0.3, 1.0}) {
    const CostBuckets buckets(spread);
    EXPECT_EQ(buckets.per_doubling(), std::ceil(std::log(2) / std::log1p(spread) - 1e-9));
    std::map<int64_t, double> least;
    for (double cost = 1e-3; cost < 1e4; cost *= 1.0003) {
      const auto begin = least.try_emplace(buckets.Of(cost), cost).first;
      EXPECT_LE(cost, begin->second * (1 + spread)) << cost;
      EXPECT_EQ(begin, std::prev(least.end())) << "buckets ascend";
    }
    EXPECT_LT(buckets.Of(0), least.begin()->first);
  }
}

}  // namespace
}  // namespace penstock
