// SPDX-License-Identifier: Apache-2.0
// Stores the dispatcher's changes so that they outlive the dispatcher: numbered records of bytes
// and, from time to time, a snapshot that replaces all records up to a certain one. changes_proto.h
// defines the bytes, and docs/journal.md describes the files. A snapshot consists of pieces with
// keys. After the first snapshot of a process, a snapshot names only the pieces that have changed,
// unless the journal is in a format before kPiecesFormat (control/state/format.h).
//
// Append returns at once. One writer makes all waiting records durable together (group commit). A
// journal that cannot write fails for good: status() returns the reason, and no further record
// becomes durable. The dispatcher must then end, because no peer may learn of an unwritten change.
// Snapshots are written by a second thread, and the log goes on without them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/env/disk.h"

namespace penstock::control {

class SnapshotStore;

// Each piece is a row of SQLite, which allows rows of up to 10^9 bytes.
inline constexpr size_t kMostSnapshotPieceBytes = 900'000'000;

// The changes that a snapshot makes in the snapshot before it.
struct SnapshotChanges {
  // By key. nullopt: the piece is removed, if it is there. A recovery returns the pieces in the
  // order of their keys, compared as bytes.
  std::map<std::string, std::optional<std::string>> pieces;
  bool whole = false;  // all pieces that are not in `pieces` are removed
  // The release before must be able to read the snapshot, so its pieces are joined before they are
  // stored (joined_pieces.h). REQUIRES: whole.
  bool joined = false;
};

// Adds the later `changes` to `to`, as if both had been made at once.
void Merge(SnapshotChanges changes, SnapshotChanges& to);
// Returns a snapshot that consists of `pieces`, in this order.
SnapshotChanges WholeSnapshot(std::vector<std::string> pieces);

inline size_t SnapshotBytes(const std::vector<std::string>& pieces) {
  size_t bytes = 0;
  for (const std::string& piece : pieces) bytes += piece.size();
  return bytes;
}

// The content of a journal when it is opened.
struct Recovered {
  struct Record {
    uint64_t sequence;
    std::string bytes;
  };
  std::vector<std::string> snapshot;  // its pieces; empty: none, and records start at 1
  uint64_t snapshot_sequence = 0;     // the last record that the snapshot contains
  std::vector<Record> records;        // the records after the snapshot, without gaps
  std::string cut;  // the incomplete record that was cut off, as text; empty: none
  uint64_t last_sequence() const {
    return records.empty() ? snapshot_sequence : records.back().sequence;
  }
};

// Any thread may call any method.
class Journal {
 public:
  // Called with a number when all records up to that number are durable, or once with an error.
  // Runs on the writer's thread; for a journal in memory, inside Append.
  using Durable = std::function<void(absl::StatusOr<uint64_t> sequence)>;

  virtual ~Journal() = default;  // writes the appended records, unless the journal has failed

  // Returns the content of the journal when it was opened. Call once, before Start.
  virtual Recovered TakeRecovered() = 0;
  // Starts appending records and calling `durable`. ResourceExhausted if the writer's thread cannot
  // be started.
  virtual absl::Status Start(Durable durable) = 0;
  // `sequence` must be the previous record's sequence plus 1. Never waits.
  virtual void Append(uint64_t sequence, std::string record) = 0;
  // Makes `changes` in the snapshot, which then replaces all records up to `sequence`. They must
  // have been appended, after the previous call's; later records may have been. The records are
  // dropped once the snapshot is durable. A snapshot that cannot be written is reported, and its
  // changes are made with the next one. The first snapshot after the journal was opened must be
  // whole. Each piece has at most kMostSnapshotPieceBytes. Never waits.
  virtual void Snapshot(uint64_t sequence, SnapshotChanges changes) = 0;
  // Waits until the record `sequence` is durable. Returns the journal's error if it never will be.
  virtual absl::Status WaitDurable(uint64_t sequence) = 0;
  virtual absl::Status status() const = 0;
  // Returns "memory", "sqlite:<path>", "etcd:<prefix>" or the name given to OpenLogJournal(), for
  // status and messages.
  virtual std::string name() const = 0;
};

// Opens a journal in memory, which is lost when this process ends.
std::unique_ptr<Journal> OpenMemoryJournal();

// Opens the journal in the directory `work_dir`, which is made if missing. FailedPrecondition, with
// the directory's name, if this or another process has the journal open, or if a newer release
// wrote it. DataLoss, which names the damaged record or snapshot, if the journal is damaged. An
// incomplete record at the end is cut off, and Recovered::cut describes it. Only this user may read
// the files, because they say what jobs read. The logs are on `disk`; SQLite opens journal.db
// itself, on this machine's disk.
// `term`: of the leader that opens it, if there are standbys on other machines that mount the
// directory; 0: none. Once a leader of a later term has opened it, the journal fails with Aborted.
absl::StatusOr<std::unique_ptr<Journal>> OpenSqliteJournal(const std::string& work_dir,
                                                           Disk& disk = LocalDisk(),
                                                           uint64_t term = 0);

// Opens a journal whose logs are on `disk` in the directory `work_dir`, which must exist, and whose
// snapshot is in `snapshots`. `disk` must outlive the journal. Has the errors of OpenSqliteJournal,
// except that only the store can notice a second process.
absl::StatusOr<std::unique_ptr<Journal>> OpenLogJournal(const std::string& work_dir, Disk& disk,
                                                        std::unique_ptr<SnapshotStore> snapshots,
                                                        std::string name, uint64_t term = 0);

}  // namespace penstock::control
