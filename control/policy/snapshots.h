// SPDX-License-Identifier: Apache-2.0
// Decides when the journal gets a snapshot. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::control {

// A restarted dispatcher reads and applies about as many records at most.
inline constexpr uint64_t kRecordsPerSnapshot = 20'000;
inline constexpr uint64_t kBytesPerSnapshot = uint64_t{64} << 20;

// Records of the journal. A snapshot is due after as many records or as many bytes.
struct LogSize {
  uint64_t records = 0;
  uint64_t bytes = 0;
};

// `since`: the records after the latest snapshot.
inline bool SnapshotIsDue(const LogSize& since, const LogSize& per_snapshot) {
  return since.records >= per_snapshot.records || since.bytes >= per_snapshot.bytes;
}

// The bytes of a snapshot that are encoded in one transaction, under the core's lock: about a
// millisecond's work.
inline constexpr size_t kSnapshotBytesAtOnce = size_t{64} << 10;

}  // namespace penstock::control
