// SPDX-License-Identifier: Apache-2.0
// Stores the snapshot of a journal. The logs are beside it (journal.h). snapshot_db.h stores it in
// SQLite, and the simulator in a file of its own disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/journal/journal.h"

namespace penstock::control {

// Not thread-safe. Errors name the file.
class SnapshotStore {
 public:
  struct Snapshot {
    uint64_t sequence = 0;            // 0: none
    std::vector<std::string> pieces;  // in the order of their keys
  };

  virtual ~SnapshotStore() = default;
  // Returns the newest snapshot. DataLoss if it is damaged.
  virtual absl::StatusOr<Snapshot> Read() = 0;
  // Makes `changes` durably, completely or not at all. The snapshot is then that of `sequence`. The
  // first call after Read() must be whole, and so must the call after `changes` that are joined.
  // ResourceExhausted if the disk is full or no file descriptor is left; the store can then be used
  // again.
  virtual absl::Status Write(uint64_t sequence, const SnapshotChanges& changes) = 0;
  // Returns an error if the file that the last Write() made or changed has been deleted or
  // replaced, because the snapshot would be lost.
  virtual absl::Status CheckThere() = 0;
};

}  // namespace penstock::control
