// SPDX-License-Identifier: Apache-2.0
#include "penstock/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock {
namespace {

using testing::ElementsAre;

TEST(Tensor, SeesTheCallersValuesInPlace) {
  const int32_t values[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {2, 3};
  const Tensor tensor(kInt32, dims, values);
  EXPECT_EQ(tensor.rank(), 2);
  EXPECT_EQ(tensor.dim(1), 3);
  EXPECT_EQ(tensor.element_count(), 6);
  EXPECT_EQ(tensor.byte_count(), 24u);
  EXPECT_EQ(tensor.data<int32_t>().data(), values);
  EXPECT_EQ(tensor.ToString(), "[1 2 3 4 5 6] int32 [2,3]");
  EXPECT_EQ(tensor.ToString(2), "[1 2 …] int32 [2,3]");
}

TEST(Tensor, OfOneValueIsAScalar) {
  const bool value = true;
  const Tensor tensor(kBool, {}, &value);
  EXPECT_TRUE(tensor.scalar<bool>());
  EXPECT_EQ(tensor.ToString(), "true bool");
}

TEST(Tensor, GivesStringsByTheirOffsets) {
  const uint64_t offsets[] = {0, 2, 2, 5};
  const int64_t dims[] = {3};
  const Tensor tensor(kString, dims, offsets, "ab\x01yz");
  EXPECT_EQ(tensor.string(0), "ab");
  EXPECT_EQ(tensor.string(1), "");
  EXPECT_EQ(tensor.string(2), "\x01yz");
  EXPECT_EQ(tensor.byte_count(), 0u);
  EXPECT_EQ(tensor.ToString(), R"(["ab" "" "\x01yz"] string [3])");
}

TEST(Tensor, LeftOutIsNotPresent) {
  EXPECT_FALSE(Tensor().present());
  EXPECT_EQ(Tensor().ToString(), "absent");
}

TEST(Tensor, ShowsItsRowSplits) {
  const float values[] = {0.5f, 1, 2};
  const int64_t dims[] = {3};
  const int64_t rows[] = {0, 2, 2, 3};
  Tensor tensor(kFloat32, dims, values);
  const absl::Span<const int64_t> levels[] = {rows};
  tensor.SetRagged(levels);
  EXPECT_EQ(tensor.kind(), TensorSpec::Kind::kRagged);
  EXPECT_EQ(tensor.ragged_rank(), 1);
  EXPECT_THAT(tensor.row_splits(0), ElementsAre(0, 2, 2, 3));
  EXPECT_EQ(tensor.ToString(), "[0.5 1 2] float32 [3] rows [0 2 2 3]");
}

TEST(Tensor, ShowsItsSparseParts) {
  const std::complex<float> values[] = {{1, -2}};
  const int64_t dims[] = {1};
  const int64_t indices[] = {1, 2};
  const int64_t dense_shape[] = {3, 4};
  Tensor tensor(kComplex64, dims, values);
  tensor.SetSparse(indices, dense_shape);
  EXPECT_EQ(tensor.ragged_rank(), 0);
  EXPECT_THAT(tensor.indices(), ElementsAre(1, 2));
  EXPECT_THAT(tensor.dense_shape(), ElementsAre(3, 4));
  EXPECT_EQ(tensor.ToString(), "[1-2j] complex64 [1] of [3,4]");
}

TEST(TensorDeathTest, AbortsWhenReadAsAnotherType) {
  const float value = 1;
  const Tensor tensor(kFloat32, {}, &value);
  EXPECT_DEATH(tensor.data<int32_t>(), "a tensor of float32 was read as int32");
}

}  // namespace
}  // namespace penstock
