// SPDX-License-Identifier: Apache-2.0
// Small datasets of numbers and of sequences of different lengths, and the errors of refused
// datasets.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "penstock/dataset.h"

namespace penstock {

inline constexpr int64_t kAny = kUnknownDim;

inline Dataset Numbers(std::vector<int64_t> values) {
  return Dataset::FromTensorSlices<int64_t>(std::move(values));
}
// Returns 1, 2 … n as one tensor for each length n > 0.
inline Dataset Vectors(std::vector<int64_t> lengths) {
  return Numbers(std::move(lengths)).FlatMap([](Expr n) {
    return Dataset::Range(n).Map([](Expr i) { return i + 1; }).Batch(100);
  });
}

// Returns the error of a refused dataset.
inline std::string Mistake(const Dataset& dataset) {
  EXPECT_EQ(dataset.status().code(), absl::StatusCode::kInvalidArgument) << dataset.status();
  return std::string(dataset.status().message());
}

}  // namespace penstock
