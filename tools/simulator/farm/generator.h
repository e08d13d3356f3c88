// SPDX-License-Identifier: Apache-2.0
// Draws scenarios as texts, so that a drawn scenario can be saved, read and changed.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::simulator {

// Returns the text of a scenario that ParseScenario() accepts. A seed gives one text. The scenario
// runs this one seed.
std::string DrawScenario(uint64_t seed);

// Returns the names (Fault::name) of all faults that may be drawn, sorted.
std::vector<std::string> DrawnFaults();

// Returns the options of a scenario as names of states for the coverage: "option job weight" for
// "job a weight=2". Statements about faults are left out.
std::set<std::string> OptionStates(std::string_view text);
// The same for all options that may be drawn, sorted.
std::vector<std::string> DrawnOptions();

}  // namespace penstock::simulator
