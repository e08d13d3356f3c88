// SPDX-License-Identifier: Apache-2.0
// The part of Explain() about a node Distribute.
#pragma once

#include <string>

#include "penstock/dataset.h"

namespace penstock::client {

// Returns which elements are read where, and the options that differ from their defaults:
// name=value by the names of the options, durations with their unit, choices by their names.
std::string ExplainDistribute(const Dataset::Node& node);

}  // namespace penstock::client
