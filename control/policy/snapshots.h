// SPDX-License-Identifier: Apache-2.0
// Decides when the journal gets a snapshot. Pure functions.
#pragma once

#include <cstdint>

namespace penstock::control {

inline constexpr uint64_t kRecordsPerSnapshot = 20'000;

// `sequence`: the number of the last record. `snapshot_sequence`: the number of the last record
// that the latest snapshot contains.
inline bool SnapshotIsDue(uint64_t sequence, uint64_t snapshot_sequence,
                          uint64_t records_per_snapshot) {
  return sequence - snapshot_sequence >= records_per_snapshot;
}

}  // namespace penstock::control
