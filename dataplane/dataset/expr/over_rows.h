// SPDX-License-Identifier: Apache-2.0
// One call of a function for many rows of a batch: its inputs and results have one more dimension
// in front. Each operation's overhead is then paid once for all rows, and its loop is long enough
// for vector instructions.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/dataset/expr/function.h"

namespace penstock {

struct FunctionOverRows {
  // Takes a tuple of leaves [rows, …] and returns the results as [rows, …].
  std::shared_ptr<const FunctionDef> def;
  std::vector<size_t> leaves;  // the element's leaf for each input
};

// Returns nullopt if the function does not compute the same results over rows (an operation that is
// not elementwise, an unknown shape, a result that uses no input), or if a row is so large that a
// separate call for each row costs hardly more.
std::optional<FunctionOverRows> OverRowsOf(const FunctionDef& def);

}  // namespace penstock
