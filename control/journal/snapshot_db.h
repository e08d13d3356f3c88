// SPDX-License-Identifier: Apache-2.0
// The SQLite file of a journal: its snapshot, its version, and the lock that keeps a second
// dispatcher out. Not thread safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

struct sqlite3;

namespace penstock::control {

inline constexpr int kJournalVersion = 3;

class SnapshotDb {
 public:
  // Opens the file, makes it if missing, and upgrades one of an older release. Holds its lock until
  // destroyed. Has the errors of OpenSqliteJournal.
  static absl::StatusOr<SnapshotDb> Open(const std::string& path);

  struct Snapshot {
    uint64_t sequence = 0;  // 0: none
    std::vector<std::string> pieces;
  };
  absl::StatusOr<Snapshot> Read();
  // Replaces the snapshot durably, completely or not at all.
  absl::Status Write(uint64_t sequence, absl::Span<const std::string> pieces);
  // Returns FailedPrecondition if the open file has been deleted or replaced: everything written to
  // it is lost.
  absl::Status CheckThere();

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  SnapshotDb(std::string path, sqlite3* db) : path_(std::move(path)), db_(db) {}
  absl::Status Run(const char* sql);
  absl::Status Insert(uint64_t sequence, absl::Span<const std::string> pieces);
  absl::StatusOr<int64_t> Number(const char* sql);
  absl::Status Error(int code) const;

  std::string path_;
  std::unique_ptr<sqlite3, Close> db_;
};

}  // namespace penstock::control
