// SPDX-License-Identifier: Apache-2.0
// Dataset::Explain() with the measurements of an iterator.
#pragma once

#include <string>

#include "penstock/dataset.h"
#include "penstock/iterator.h"

#pragma GCC visibility push(default)
namespace penstock {

// Returns the tree of Dataset::Explain() with the counts, seconds and tuned settings of each node.
// `stats` must come from an iterator of an equal dataset. Nodes that `stats` does not name are
// shown without measurements.
std::string Explain(const Dataset& dataset, const IteratorStats& stats);

}  // namespace penstock
#pragma GCC visibility pop
