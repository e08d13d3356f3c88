// SPDX-License-Identifier: Apache-2.0
// Dataset::Explain() beside what an iterator has measured.
#pragma once

#include <string>

#include "penstock/dataset.h"
#include "penstock/iterator.h"

namespace penstock {

// The tree of Dataset::Explain(), with the counts, seconds and tuned settings of each
// node. `stats` are those of an iterator of an equal dataset; nodes that it does not
// have (behind Distribute) are shown without.
std::string Explain(const Dataset& dataset, const IteratorStats& stats);

}  // namespace penstock
