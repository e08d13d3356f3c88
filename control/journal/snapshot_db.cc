// SPDX-License-Identifier: Apache-2.0
#include "control/journal/snapshot_db.h"

#include <sqlite3.h>
#include <zlib.h>

#include "absl/strings/str_cat.h"
#include "penstock/status.h"

namespace penstock::control {
namespace {

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

int64_t Checksum(const void* data, size_t size) {
  return static_cast<int64_t>(
      crc32_z(crc32_z(0, nullptr, 0), static_cast<const Bytef*>(data), size));
}

}  // namespace

void SnapshotDb::Close::operator()(sqlite3* db) const {
  sqlite3_close(db);
}

absl::Status SnapshotDb::Error(int code) const {
  const std::string why = sqlite3_errmsg(db_.get());
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::FailedPreconditionError(
          absl::StrCat("journal ", path_,
                       " is held by another dispatcher; stop it, or give this one another "
                       "work_dir"));
    case SQLITE_FULL:
    case SQLITE_IOERR:
      return absl::ResourceExhaustedError(absl::StrCat("cannot write journal ", path_, ": ", why));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(
          absl::StrCat("journal ", path_, " is damaged: ", why, "; restore the file from a copy"));
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return absl::PermissionDeniedError(absl::StrCat("cannot open journal ", path_, ": ", why));
    default:
      return absl::InternalError(absl::StrCat("journal ", path_, ": ", why));
  }
}

absl::Status SnapshotDb::Run(const char* sql) {
  const int code = sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

absl::StatusOr<int64_t> SnapshotDb::Number(const char* sql) {
  sqlite3_stmt* raw = nullptr;
  int code = sqlite3_prepare_v2(db_.get(), sql, -1, &raw, nullptr);
  Statement statement(raw);
  if (code == SQLITE_OK) code = sqlite3_step(raw);
  if (code != SQLITE_ROW) return Error(code);
  return sqlite3_column_int64(raw, 0);
}

absl::StatusOr<SnapshotDb> SnapshotDb::Open(const std::string& path) {
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  SnapshotDb db(path, raw);
  if (code != SQLITE_OK) return db.Error(code);
  // The exclusive lock, once taken, stays until the connection is closed.
  RETURN_IF_ERROR(db.Run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL;"));
  RETURN_IF_ERROR(db.Run("BEGIN EXCLUSIVE; COMMIT;"));
  ASSIGN_OR_RETURN(int64_t version, db.Number("PRAGMA user_version"));
  if (version > kJournalVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("journal ", path, " has version ", version, ", this release reads up to ",
                     kJournalVersion, "; start the newer release that wrote it"));
  }
  if (version == kJournalVersion) return db;
  static_assert(kJournalVersion == 1, "the number below");
  RETURN_IF_ERROR(
      db.Run("BEGIN EXCLUSIVE;"
             "CREATE TABLE snapshot (sequence INTEGER PRIMARY KEY, checksum INTEGER NOT NULL,"
             " bytes BLOB NOT NULL);"
             "PRAGMA user_version = 1;"
             "COMMIT;"));
  return db;
}

absl::StatusOr<SnapshotDb::Snapshot> SnapshotDb::Read() {
  sqlite3_stmt* raw = nullptr;
  int code = sqlite3_prepare_v2(
      db_.get(), "SELECT sequence, checksum, bytes FROM snapshot ORDER BY sequence DESC LIMIT 1",
      -1, &raw, nullptr);
  Statement statement(raw);
  if (code == SQLITE_OK) code = sqlite3_step(raw);
  if (code == SQLITE_DONE) return Snapshot{};
  if (code != SQLITE_ROW) return Error(code);
  Snapshot snapshot{.sequence = static_cast<uint64_t>(sqlite3_column_int64(raw, 0)), .bytes = {}};
  const void* blob = sqlite3_column_blob(raw, 2);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(raw, 2));
  if (blob != nullptr) snapshot.bytes.assign(static_cast<const char*>(blob), size);
  if (sqlite3_column_int64(raw, 1) != Checksum(snapshot.bytes.data(), snapshot.bytes.size())) {
    return absl::DataLossError(absl::StrCat("journal ", path_, ": the snapshot of record ",
                                            snapshot.sequence,
                                            " is damaged; restore the file from a copy"));
  }
  return snapshot;
}

absl::Status SnapshotDb::Write(uint64_t sequence, const std::string& bytes) {
  RETURN_IF_ERROR(Run("BEGIN EXCLUSIVE; DELETE FROM snapshot;"));
  sqlite3_stmt* raw = nullptr;
  int code =
      sqlite3_prepare_v2(db_.get(), "INSERT INTO snapshot VALUES (?, ?, ?)", -1, &raw, nullptr);
  Statement statement(raw);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(raw, 1, static_cast<int64_t>(sequence));
  if (code == SQLITE_OK) code = sqlite3_bind_int64(raw, 2, Checksum(bytes.data(), bytes.size()));
  if (code == SQLITE_OK) {
    code = sqlite3_bind_blob64(raw, 3, bytes.data(), bytes.size(), SQLITE_STATIC);
  }
  if (code == SQLITE_OK) code = sqlite3_step(raw);
  if (code != SQLITE_DONE) {
    absl::Status failed = Error(code);
    statement.reset();
    Run("ROLLBACK").IgnoreError();  // the first reason is the one to tell
    return failed;
  }
  statement.reset();
  return Run("COMMIT");
}

}  // namespace penstock::control
