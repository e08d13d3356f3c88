// SPDX-License-Identifier: Apache-2.0
// The SQLite file of a journal. It contains the snapshot and the journal's version, and its lock
// keeps a second dispatcher out. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/journal/snapshot_store.h"

struct sqlite3;
struct sqlite3_stmt;

namespace penstock::control {

// The versions of the file that this release writes; it also reads older ones. docs/journal.md
// lists which format of the journal has which version.
inline constexpr int kJoinedVersion = 3;   // joined pieces: SnapshotChanges::joined
inline constexpr int kJournalVersion = 4;  // pieces with keys

class SnapshotDb final : public SnapshotStore {
 public:
  // Opens the file; makes it if it is missing, and upgrades it to kJoinedVersion if it is older.
  // The first snapshot in pieces with keys upgrades it to kJournalVersion. The returned object
  // holds the file's lock until it is destroyed. Has the errors of OpenSqliteJournal.
  static absl::StatusOr<SnapshotDb> Open(const std::string& path);

  absl::StatusOr<Snapshot> Read() override;
  absl::Status Write(uint64_t sequence, const SnapshotChanges& changes) override;
  // The error is FailedPrecondition.
  absl::Status CheckThere() override;

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

  SnapshotDb(std::string path, sqlite3* db) : path_(std::move(path)), db_(db) {}
  absl::Status Run(const char* sql);
  absl::StatusOr<Statement> Prepare(const char* sql);
  absl::Status Change(const SnapshotChanges& changes);
  absl::Status WritePieces(uint64_t sequence, const SnapshotChanges& changes);
  absl::Status WriteJoined(uint64_t sequence, const SnapshotChanges& changes);
  absl::StatusOr<Snapshot> ReadJoined();
  absl::Status Damaged(const std::string& piece, uint64_t sequence) const;
  absl::StatusOr<int64_t> Number(const char* sql);
  absl::Status Error(int code) const;

  std::string path_;
  std::unique_ptr<sqlite3, Close> db_;
};

}  // namespace penstock::control
