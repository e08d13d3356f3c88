// SPDX-License-Identifier: Apache-2.0
// Writes the snapshots of a journal into their store, on a thread of its own, so that the log does
// not wait for them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "control/journal/journal.h"
#include "control/journal/snapshot_store.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"

namespace penstock::control {

// Any thread may call any method. If several snapshots wait, they are written as one.
//
// Pieces that must be joined (SnapshotChanges::joined) are joined on the writer's thread.
//
// A snapshot that cannot be written is reported (ReportFailedSnapshot), and its changes are made
// with the next one. An error other than ResourceExhausted may mean that the store has lost what it
// was given, so the store is not written to again by this process. The logs then stay.
class SnapshotWriter {
 public:
  // Called on the writer's thread when the snapshot of `sequence` is durable. An error is reported.
  using Written = std::function<absl::Status(uint64_t sequence)>;
  // Called once, on the writer's thread, if the store's file has been deleted or replaced. No
  // snapshot is written after that.
  using Lost = std::function<void(const absl::Status&)>;

  explicit SnapshotWriter(std::unique_ptr<SnapshotStore> store) : store_(std::move(store)) {}
  ~SnapshotWriter();  // writes the snapshot that waits

  // ResourceExhausted if the thread cannot be started.
  absl::Status Start(const std::string& name, Written written, Lost lost);
  // REQUIRES: Start() has returned OK. Never waits.
  void Write(uint64_t sequence, SnapshotChanges changes);

 private:
  void Run();
  // Returns whether further snapshots can be written.
  bool WriteOne(uint64_t sequence, SnapshotChanges changes);

  const std::unique_ptr<SnapshotStore> store_;  // used only by the thread
  Written written_;                             // constant after Start, like `lost_`
  Lost lost_;
  Thread thread_;

  Mutex mu_;
  Condition changed_;
  SnapshotChanges waiting_ GUARDED_BY(mu_);
  uint64_t sequence_ GUARDED_BY(mu_) = 0;  // of `waiting_`
  bool asked_ GUARDED_BY(mu_) = false;     // to write `waiting_`
  bool stopping_ GUARDED_BY(mu_) = false;
  bool ended_ GUARDED_BY(mu_) = false;  // no snapshot is written any more
};

// Logs the event "snapshot_failed", and counts it in penstock_journal_snapshots_failed_total.
void ReportFailedSnapshot(const absl::Status& why);

}  // namespace penstock::control
