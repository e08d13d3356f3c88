// SPDX-License-Identifier: Apache-2.0
// The checks that apply to nodes whose next element depends on a value (Filter, FlatMap,
// Interleave). If the value were different when a partition is read again, all later elements would
// get different indices.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/graph/graph.h"

namespace penstock {

// InvalidArgument names `argument` if the function is not deterministic.
absl::Status CheckDeterministic(const FunctionDef& function, std::string_view argument);

// Checks all functions, registered sources and registered transforms in the tree of `input`.
// InvalidArgument names the node.
absl::Status CheckDeterministic(const Dataset::Node& input);

}  // namespace penstock
