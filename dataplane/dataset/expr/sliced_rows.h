// SPDX-License-Identifier: Apache-2.0
// Several slices of one value as one step: each row of the value is looked at once,
// however many slices take part of it, as where the columns of a table become
// tensors of their own.
#pragma once

#include <cstddef>
#include <vector>

#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/function.h"

namespace penstock {

// Two operations or more, by their place in the function: each Slice of one value,
// of static shape and rank 2, so that none of them can fail.
using SlicedRows = std::vector<size_t>;
std::vector<SlicedRows> FindSlicedRows(const FunctionDef& def);

// Takes the value and makes the outputs of all of them, in their order.
Kernel MakeSlicedRows(const FunctionDef& def, const SlicedRows& slices);

}  // namespace penstock
