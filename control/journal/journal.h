// SPDX-License-Identifier: Apache-2.0
// Stores the dispatcher's changes beyond its life: numbered records of bytes, and from time to time
// a snapshot that replaces all records up to a number. changes_proto.h defines the bytes,
// docs/journal.md the files.
//
// Append returns at once; one writer makes all waiting records durable together (group commit). A
// journal that cannot write fails for good: status() gives the reason, nothing more becomes
// durable, and the dispatcher must end, because no peer may learn of an unwritten change.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/env/disk.h"

namespace penstock::control {

// SQLite keeps rows of up to 10^9 bytes.
inline constexpr size_t kMostSnapshotPieceBytes = 900'000'000;

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
  std::vector<std::string> snapshot;  // in pieces; empty: none, and records start at 1
  uint64_t snapshot_sequence = 0;     // contains the records up to this one
  std::vector<Record> records;        // the records after it, without gaps
  std::string cut;                    // describes the incomplete record cut off; empty: none
  uint64_t last_sequence() const {
    return records.empty() ? snapshot_sequence : records.back().sequence;
  }
};

// Any thread may call any method.
class Journal {
 public:
  // Called with a number when all records up to it are durable, or once with an error. The caller
  // is the writer's thread, or Append of a journal in memory.
  using Durable = std::function<void(absl::StatusOr<uint64_t> sequence)>;

  virtual ~Journal() = default;  // writes the appended records, unless the journal has failed

  // Returns the content of the journal when it was opened. Call once, before Start.
  virtual Recovered TakeRecovered() = 0;
  // Starts appending records and calling `durable`. ResourceExhausted if the writer's thread cannot
  // be started.
  virtual absl::Status Start(Durable durable) = 0;
  // `sequence` is the previous one plus 1. Never waits.
  virtual void Append(uint64_t sequence, std::string record) = 0;
  // Replaces all records up to `sequence`, which have been appended; they are dropped once the
  // snapshot is durable. Recovery returns the same pieces, each of at most kMostSnapshotPieceBytes.
  // Never waits.
  virtual void Snapshot(uint64_t sequence, std::vector<std::string> pieces) = 0;
  // Waits until `sequence` is durable, or returns the error that prevents it.
  virtual absl::Status WaitDurable(uint64_t sequence) = 0;
  virtual absl::Status status() const = 0;
  // Returns "memory" or "sqlite:<path>", for status and messages.
  virtual std::string name() const = 0;
};

// Opens a journal that keeps nothing beyond this process.
std::unique_ptr<Journal> OpenMemoryJournal();

// Opens the journal in the directory `work_dir`, which is made if missing. FailedPrecondition, with
// the directory, if another process (or this one) has it open, or if a newer release wrote it.
// DataLoss, with the record or the snapshot, if it is damaged. An incomplete record at the end is
// cut off, and Recovered describes it. Only this user may read the files, because they contain
// tokens of jobs. The logs are on `disk`; SQLite opens journal.db itself, on this machine's disk.
absl::StatusOr<std::unique_ptr<Journal>> OpenSqliteJournal(const std::string& work_dir,
                                                           Disk& disk = LocalDisk());

}  // namespace penstock::control
