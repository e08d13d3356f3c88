// SPDX-License-Identifier: Apache-2.0
// Checks a cross-trainer cache (dataplane/worker/shared_window.h): a trainer gets an element of a
// worker's window at most once, and each element has the right value. A trainer may miss elements.
// Without faults it also reads each partition in order. With faults, elements that a broken link
// leaves in doubt come later, and a partition that moves to another worker is read again.
#pragma once

#include <string>
#include <vector>

#include "tools/simulator/check/exactly_once.h"
#include "tools/simulator/check/history.h"

namespace penstock::simulator {

// `expected`: one pass of the dataset, which is read without end. `calm`: there were no faults.
// Returns violations.
std::vector<std::string> CheckCache(const Histories& histories, const ExpectedElements& expected,
                                    bool calm);

}  // namespace penstock::simulator
