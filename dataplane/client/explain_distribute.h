// SPDX-License-Identifier: Apache-2.0
// The part of Explain() that describes a Distribute node.
#pragma once

#include <string>

#include "penstock/dataset.h"

namespace penstock::client {

// Returns the place from which the elements are read, and the options that differ from their
// defaults, as name=value. Durations have a unit, and choices are given by name.
std::string ExplainDistribute(const Dataset::Node& node);

}  // namespace penstock::client
