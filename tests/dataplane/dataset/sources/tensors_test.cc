// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "dataplane/dataset/graph/split.h"
#include "penstock/dataset.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
std::vector<T> Scalars(const Dataset& dataset) {
  std::vector<T> values;
  for (absl::StatusOr<Element>& element : dataset.Elements()) {
    EXPECT_TRUE(element.ok()) << element.status();
    if (element.ok()) values.push_back(element->tensor(0).scalar<T>());
  }
  return values;
}

std::string Mistake(const Dataset& dataset) {
  return dataset.status().ToString();
}

TEST(Range, CountsAsPythonsRange) {
  EXPECT_THAT(Scalars<int64_t>(Dataset::Range(3)), ElementsAre(0, 1, 2));
  EXPECT_THAT(Scalars<int64_t>(Dataset::Range(2, 9, 3)), ElementsAre(2, 5, 8));
  EXPECT_THAT(Scalars<int64_t>(Dataset::Range(2, 8, 3)), ElementsAre(2, 5));
  EXPECT_THAT(Scalars<int64_t>(Dataset::Range(3, -3, -2)), ElementsAre(3, 1, -1));
  EXPECT_THAT(Scalars<int64_t>(Dataset::Range(5, 5)), ElementsAre());
  EXPECT_THAT(Scalars<int64_t>(Dataset::Range(-1)), ElementsAre());
}

TEST(Range, ReachesTheEndsOfInt64) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Scalars<int64_t>(Dataset::Range(kMin, kMax, kMax)), ElementsAre(kMin, -1, kMax - 1));
  EXPECT_THAT(Scalars<int64_t>(Dataset::Range(kMax, kMin, kMin)), ElementsAre(kMax, -1));
  EXPECT_THAT(Mistake(Dataset::Range(kMin, kMax)),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("Range#0"), HasSubstr("steps apart")));
}

TEST(Range, AStepOfZeroIsRefused) {
  EXPECT_THAT(Mistake(Dataset::Range(0, 5, 0)),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("Range#0"), HasSubstr("step")));
}

TEST(FromTensors, IsOneElementOfTheGivenValue) {
  EXPECT_THAT(Scalars<float>(Dataset::FromTensors(2.5f)), ElementsAre(2.5f));
  const Dataset text = Dataset::FromTensors("text");
  EXPECT_EQ(text.element_spec(), Spec(Bytes()));
  EXPECT_EQ(text.cardinality(), 1);
}

TEST(FromTensorSlices, IsOneElementPerRow) {
  const std::vector<int64_t> dims = {3, 2};
  const std::vector<int32_t> values = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> label_dims = {3};
  const std::vector<uint8_t> labels = {7, 8, 9};
  const Dataset dataset = Dataset::FromTensorSlices(
      {Tensor(kInt32, dims, values.data()), Tensor(kUInt8, label_dims, labels.data())},
      Spec::Dict({{"x", Dense(kInt32, {3, 2})}, {"y", Dense(kUInt8, {kUnknownDim})}}));
  ASSERT_TRUE(dataset.status().ok()) << dataset.status();
  EXPECT_EQ(dataset.cardinality(), 3);
  EXPECT_EQ(dataset.element_spec(), Spec::Dict({{"x", Dense(kInt32, {2})}, {"y", Scalar(kUInt8)}}));
  int row = 0;
  for (absl::StatusOr<Element>& element : dataset.Elements()) {
    ASSERT_TRUE(element.ok());
    EXPECT_THAT((*element)["x"].data<int32_t>(), ElementsAre(2 * row + 1, 2 * row + 2));
    EXPECT_EQ((*element)["y"].scalar<uint8_t>(), 7 + row);
    ++row;
  }
  EXPECT_EQ(row, 3);
}

TEST(FromTensorSlices, BoolsAndStringsHaveRowsToo) {
  EXPECT_THAT(Scalars<bool>(Dataset::FromTensorSlices<bool>({true, false, true})),
              ElementsAre(true, false, true));
  std::vector<std::string> texts;
  for (absl::StatusOr<Element>& element :
       Dataset::FromTensorSlices<std::string>({"a", "", "ccc"}).Elements())
    texts.emplace_back(element->tensor(0).string());
  EXPECT_THAT(texts, ElementsAre("a", "", "ccc"));
}

TEST(FromTensorSlices, MistakesNameTheTensor) {
  const std::vector<int64_t> three = {3}, two = {2};
  const std::vector<int32_t> values = {1, 2, 3};
  const Tensor a(kInt32, three, values.data()), b(kInt32, two, values.data());
  EXPECT_THAT(
      Mistake(Dataset::FromTensorSlices(
          {a, b}, Spec::Dict({{"x", Dense(kInt32, {3})}, {"y", Dense(kInt32, {2})}}))),
      AllOf(HasSubstr("FromTensorSlices#0"), HasSubstr("tensor y has 2 rows"), HasSubstr("3")));
  EXPECT_THAT(
      Mistake(Dataset::FromTensorSlices({Tensor(kInt32, {}, values.data())}, Scalar(kInt32))),
      HasSubstr("no rows"));
  EXPECT_THAT(Mistake(Dataset::FromTensors({a}, Dense(kFloat32, {3}))),
              AllOf(HasSubstr("FromTensors#0"), HasSubstr("int32"), HasSubstr("float32")));
  EXPECT_THAT(Mistake(Dataset::FromTensors({a, b}, Dense(kInt32, {3}))), HasSubstr("2 tensors"));
}

TEST(Splits, AreAsLargeAsEachOtherAndTogetherEverything) {
  for (int64_t count : {1, 2, 10, 1023, 1024, 1025, 5000, 10'000'000}) {
    const int64_t splits = SplitCountFor(count);
    EXPECT_GE(splits, 1);
    EXPECT_LE(splits, 1024);
    int64_t next = 0;
    for (int64_t n = 0; n < splits; ++n) {
      const Span64 span = SplitOf(count, splits, n);
      ASSERT_EQ(span.begin, next);
      ASSERT_GE(span.end - span.begin, count / splits);
      ASSERT_LE(span.end - span.begin, count / splits + 1);
      next = span.end;
    }
    EXPECT_EQ(next, count);
  }
  EXPECT_EQ(SplitCountFor(0), 0);
}

TEST(Splits, ProvidersAreNumberedAsTheirNodes) {
  const auto plan =
      PlanSplits(Dataset::Zip({Dataset::Range(3).Take(2),
                               Dataset::Range(4).Concatenate(Dataset::FromTensors(int64_t{1}))}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> nodes;
  for (const SplitProviderPlan& provider : plan->providers) nodes.push_back(provider.node);
  EXPECT_THAT(nodes, ElementsAre("Range#0", "Range#2", "FromTensors#3"));
}

}  // namespace
}  // namespace penstock
