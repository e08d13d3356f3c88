// SPDX-License-Identifier: Apache-2.0
// What Explain() says of a node Distribute.
#pragma once

#include <string>

#include "penstock/dataset.h"

namespace penstock::client {

// Whose elements are read where, and which options are not the usual ones: name=value by the names
// of the options, durations with their unit, choices by their names.
std::string ExplainDistribute(const Dataset::Node& node);

}  // namespace penstock::client
