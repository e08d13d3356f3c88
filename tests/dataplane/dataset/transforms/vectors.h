// SPDX-License-Identifier: Apache-2.0
// Small datasets of sequences whose lengths differ.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "penstock/dataset.h"

namespace penstock {

// 1, 2 … n as one tensor for each length n > 0.
inline Dataset Vectors(std::vector<int64_t> lengths) {
  return Dataset::FromTensorSlices<int64_t>(std::move(lengths)).FlatMap([](Expr n) {
    return RangeOf(n).Map([](Expr i) { return i + 1; }).Batch(100);
  });
}

// Why the dataset is refused.
inline std::string Mistake(const Dataset& dataset) {
  EXPECT_EQ(dataset.status().code(), absl::StatusCode::kInvalidArgument) << dataset.status();
  return std::string(dataset.status().message());
}

}  // namespace penstock
