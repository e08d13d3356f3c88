// SPDX-License-Identifier: Apache-2.0
// When the journal gets a snapshot. Pure.
#pragma once

#include <cstdint>

namespace penstock::control {

inline constexpr uint64_t kRecordsPerSnapshot = 20'000;

// `sequence`: of the last record. `snapshot_sequence`: of the record that the last snapshot ends
// with.
inline bool SnapshotIsDue(uint64_t sequence, uint64_t snapshot_sequence,
                          uint64_t records_per_snapshot) {
  return sequence - snapshot_sequence >= records_per_snapshot;
}

}  // namespace penstock::control
