// SPDX-License-Identifier: Apache-2.0
// How far the partitions of a coordinated read may go, so that no consumer comes to
// hold more than it has room for. docs/exactly_once.md, rule 24.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "control/protocol/iteration_desk.h"

namespace penstock::protocol {

// Elements that each consumer may hold: what the one with least room has said, and 1
// before all have.
int64_t RoomOf(const IterationRecord& record, const Desk& desk);

// Of a partition that has no further turn: what it has left goes where the rests go.
inline constexpr int64_t kAllTurns = std::numeric_limits<int64_t>::max();

// Turns of each partition ([0] is partition 1) that may be sent, as far as that is
// known now. Never fewer than before, unless consumers went back.
std::vector<int64_t> TurnsWithinRoom(const IterationRecord& record, const Desk& desk);

// Its worker is told that it may send so many.
void NoteAllowed(int64_t turns, PartitionDesk& desk);

}  // namespace penstock::protocol
