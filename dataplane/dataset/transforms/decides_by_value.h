// SPDX-License-Identifier: Apache-2.0
// For nodes that decide by value what comes next (Filter, FlatMap, Interleave):
// were a value not the same when a partition is read again, all behind it would
// have other numbers.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "dataplane/dataset/function.h"
#include "dataplane/dataset/graph.h"

namespace penstock {

// InvalidArgument naming `argument` unless the function is deterministic.
absl::Status CheckDeterministic(const FunctionDef& function, std::string_view argument);

// The same for all functions, and for registered sources and transforms, in the tree of
// `input`, naming the node.
absl::Status CheckDeterministic(const Dataset::Node& input);

}  // namespace penstock
