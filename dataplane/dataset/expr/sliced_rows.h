// SPDX-License-Identifier: Apache-2.0
// Several slices of one value as one step, such as the columns of a table that become tensors. Each
// row of the value is read once, however many slices use it.
#pragma once

#include <cstddef>
#include <vector>

#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/expr/op_registry.h"

namespace penstock {

// Two or more operations, by their place in the function. Each is a Slice of the same value. The
// value has rank 2 and a static shape, so none of the slices can fail.
using SlicedRows = std::vector<size_t>;
std::vector<SlicedRows> FindSlicedRows(const FunctionDef& def);

// The kernel takes the value and makes the outputs of all slices, in their order.
Kernel MakeSlicedRows(const FunctionDef& def, const SlicedRows& slices);

}  // namespace penstock
