// SPDX-License-Identifier: Apache-2.0
// A journal that keeps appended records in a queue, from which one thread writes them to a store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "control/journal/journal.h"

namespace penstock::control {

// Stores records and a snapshot. Used by one thread at a time. After an error, it is not used any
// more.
class RecordStore {
 public:
  using Lost = std::function<void(const absl::Status&)>;

  virtual ~RecordStore() = default;
  // Called once, before all others. `name`: the journal's. A store with threads calls `lost` on one
  // of them if it can keep nothing any more; the journal then fails. ResourceExhausted if a thread
  // cannot be started.
  virtual absl::Status Start(const std::string& /*name*/, Lost /*lost*/) {
    return absl::OkStatus();
  }
  // Makes the records durable. They follow the records that were written before.
  virtual absl::Status WriteRecords(const std::vector<Recovered::Record>& group) = 0;
  // Called after WriteRecords() if no record waits.
  virtual absl::Status OnIdle() { return absl::OkStatus(); }
  // Makes `changes` in the snapshot, which then replaces all records up to `sequence`, now or on
  // another thread. Records after `sequence` may have been written, and stay. If there is no space,
  // reports that the snapshot failed, keeps the records, and makes the changes with the next one.
  virtual absl::Status WriteSnapshot(uint64_t sequence, SnapshotChanges changes) = 0;
};

// Returns a journal with the content `recovered`, which writes to `store`.
std::unique_ptr<Journal> MakeQueuedJournal(std::string name, Recovered recovered,
                                           std::unique_ptr<RecordStore> store);

}  // namespace penstock::control
