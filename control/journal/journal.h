// SPDX-License-Identifier: Apache-2.0
// Where the dispatcher's changes survive it: numbered records, each some bytes,
// and now and then a snapshot that stands for all records up to a number. What
// the bytes mean: changes_proto.h; the files: docs/journal.md.
//
// Append returns at once; one writer makes what has gathered durable together
// (group commit). A journal that cannot write fails for good: status() says why,
// nothing becomes durable any more, and the dispatcher must end, because nobody
// may be told what is not written.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::control {

// SQLite keeps rows of up to 10^9 bytes.
inline constexpr size_t kMostSnapshotPieceBytes = 900'000'000;

inline size_t SnapshotBytes(const std::vector<std::string>& pieces) {
  size_t bytes = 0;
  for (const std::string& piece : pieces) bytes += piece.size();
  return bytes;
}

// What a journal holds when it is opened.
struct Recovered {
  struct Record {
    uint64_t sequence;
    std::string bytes;
  };
  std::vector<std::string> snapshot;  // its pieces; empty: none; then the records start at 1
  uint64_t snapshot_sequence = 0;     // contains the records up to this one
  std::vector<Record> records;        // those behind it, without gaps
  std::string cut;                    // what was cut from a torn end, in words; empty: nothing
  uint64_t last_sequence() const {
    return records.empty() ? snapshot_sequence : records.back().sequence;
  }
};

// Any thread may call any method.
class Journal {
 public:
  // Called with a number when all records up to it are durable, or once with an
  // error; from the writer's thread, or inside Append of a journal in memory.
  using Durable = std::function<void(absl::StatusOr<uint64_t> sequence)>;

  virtual ~Journal() = default;  // writes what was appended, unless it failed

  // What was there when it was opened; call once, before Start.
  virtual Recovered TakeRecovered() = 0;
  // From now on records are appended and `durable` is called. ResourceExhausted where the process
  // gets no thread for the writer.
  virtual absl::Status Start(Durable durable) = 0;
  // `sequence` is the last one plus 1. Never waits.
  virtual void Append(uint64_t sequence, std::string record) = 0;
  // Stands for all records up to `sequence`, which were appended; they are
  // dropped once it is durable. Comes back in the same pieces, each of
  // kMostSnapshotPieceBytes at most. Never waits.
  virtual void Snapshot(uint64_t sequence, std::vector<std::string> pieces) = 0;
  // Until `sequence` is durable, or the error that prevents it.
  virtual absl::Status WaitDurable(uint64_t sequence) = 0;
  virtual absl::Status status() const = 0;
  // "memory", "sqlite:<path>": for status and messages.
  virtual std::string name() const = 0;
};

// Keeps nothing beyond this process.
std::unique_ptr<Journal> OpenMemoryJournal();

// In the directory `work_dir`, made if it is not there. FailedPrecondition if
// another process (or this one) has it open, naming it, or a newer release wrote
// it; DataLoss naming the record or the snapshot if it is damaged; a torn end is
// cut and told in Recovered.
absl::StatusOr<std::unique_ptr<Journal>> OpenSqliteJournal(const std::string& work_dir);

}  // namespace penstock::control
