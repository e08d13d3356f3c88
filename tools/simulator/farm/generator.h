// SPDX-License-Identifier: Apache-2.0
// Draws scenarios as texts, so that a drawn scenario can be saved, read and changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::simulator {

// Returns the text of a scenario that ParseScenario() accepts. A seed gives one text. The scenario
// runs this one seed.
std::string DrawScenario(uint64_t seed);

// Returns the names (Fault::name) of all faults that may be drawn, sorted.
std::vector<std::string> DrawnFaults();

}  // namespace penstock::simulator
