// SPDX-License-Identifier: Apache-2.0
// The SQLite file of a journal. It contains the snapshot and the journal's version, and its lock
// keeps a second dispatcher out. Not thread-safe.
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
  // Opens the file; makes it if it is missing, and upgrades it if an older release wrote it. The
  // returned object holds the file's lock until it is destroyed. Has the errors of
  // OpenSqliteJournal.
  static absl::StatusOr<SnapshotDb> Open(const std::string& path);

  struct Snapshot {
    uint64_t sequence = 0;  // 0: none
    std::vector<std::string> pieces;
  };
  absl::StatusOr<Snapshot> Read();
  // Replaces the snapshot durably, completely or not at all.
  absl::Status Write(uint64_t sequence, absl::Span<const std::string> pieces);
  // Returns FailedPrecondition if the open file has been deleted or replaced, because all data
  // written to it would be lost.
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
