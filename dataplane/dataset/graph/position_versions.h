// SPDX-License-Identifier: Apache-2.0
// The versions of what iterators save: of the bytes around the nodes' positions, and of the
// positions of each kind of node (NodeKind::position_version).
#pragma once

#include <cstdint>
#include <vector>

#include "control/protocol/message_parts.h"
#include "penstock/dataset.h"

namespace penstock {

// The version of the bytes around the nodes' positions that this release saves, and the oldest one
// that it restores. The first release that numbered them had version 2.
inline constexpr uint32_t kPositionVersion = 2;
inline constexpr uint32_t kOldestPosition = 2;
inline constexpr uint32_t kFirstPosition = 2;

// Returns the versions, other than the first ones, of a position that this release saves of the
// dataset.
std::vector<control::PositionVersion> PositionVersionsOf(const Dataset& dataset);

// Returns the versions that this release restores, of all operations for which these are not just
// the first one.
std::vector<control::PositionVersions> ReadablePositions();

}  // namespace penstock
