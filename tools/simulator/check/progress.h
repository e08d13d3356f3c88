// SPDX-License-Identifier: Apache-2.0
// Says what a run waits for that does not end.
#pragma once

#include <string_view>

#include "tools/simulator/service/world.h"

namespace penstock::simulator {

// Adds "stuck: <why>" to the violations, and after it a line for each fiber that waits, the
// trainers' first.
void NoteStuck(World& world, std::string_view why);

}  // namespace penstock::simulator
