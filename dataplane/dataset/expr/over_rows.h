// SPDX-License-Identifier: Apache-2.0
// One call of a function for many rows of a batch: its inputs and results with one
// dimension more in front. What each operation costs is then paid once for all rows,
// and its loop is long enough for vector instructions.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/dataset/function.h"

namespace penstock {

struct FunctionOverRows {
  // Takes a tuple of leaves [rows, …] and gives the results as [rows, …].
  std::shared_ptr<const FunctionDef> def;
  std::vector<size_t> leaves;  // which leaf of the element each of its inputs is
};

// nullopt where the function is not the same over rows (an operation that is not
// elementwise, a shape that is not known, a result that no input takes part in), or
// where a row is so large that a call for each costs next to nothing.
std::optional<FunctionOverRows> OverRowsOf(const FunctionDef& def);

}  // namespace penstock
