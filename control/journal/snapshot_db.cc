// SPDX-License-Identifier: Apache-2.0
#include "control/journal/snapshot_db.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "control/env/disk.h"
#include "control/journal/checksum.h"
#include "control/journal/journal.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

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
                       " is held by another dispatcher; stop it, or give this one a "
                       "different work_dir"));
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(absl::StrCat("cannot write journal ", path_, ": ", why));
    case SQLITE_IOERR: {
      const std::string what = absl::StrCat("cannot write journal ", path_, ": ", why);
      // A write error means that a limit on the file's size or a quota was reached (a full disk is
      // SQLITE_FULL). Any other I/O error is Internal, because data that could not be synced or
      // read may be lost.
      return sqlite3_extended_errcode(db_.get()) == SQLITE_IOERR_WRITE
                 ? absl::ResourceExhaustedError(what)
                 : absl::InternalError(what);
    }
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(
          absl::StrCat("journal ", path_, " is damaged: ", why, "; restore the file from a copy"));
    case SQLITE_CANTOPEN:
      if (const int error = sqlite3_system_errno(db_.get()); error == EMFILE || error == ENFILE)
        return DiskError(error, "open the files next to journal", path_);
      [[fallthrough]];
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
  // The file contains tokens of jobs, and SQLite would make it readable by other users. SQLite
  // gives the files next to it the same permissions.
  if (const absl::Status made = LocalDisk().CreateLocked(path).status();
      !made.ok() && !absl::IsAlreadyExists(made)) {
    return made;
  }
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  SnapshotDb db(path, raw);
  if (code != SQLITE_OK) return db.Error(code);
  // Before 0.9 the file was readable by other users.
  if (chmod(path.c_str(), 0600) != 0) return DiskError(errno, "set the permissions of", path);
  // Once the exclusive lock is taken, it is held until the connection is closed.
  RETURN_IF_ERROR(db.Run("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL;"));
  RETURN_IF_ERROR(db.Run("BEGIN EXCLUSIVE; COMMIT;"));
  ASSIGN_OR_RETURN(int64_t version, db.Number("PRAGMA user_version"));
  if (version > kJournalVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "journal ", path, " has version ", version, ", but this release reads versions up to ",
        kJournalVersion, "; start the newer release that wrote it"));
  }
  static_assert(kJournalVersion == 3, "the number below");
  if (version == kJournalVersion) return db;
  RETURN_IF_ERROR(db.Run("BEGIN EXCLUSIVE;"));
  // Version 3 has the tables of version 2, but an older release would ignore the past iterations in
  // the snapshots of version 3.
  if (version == 2) {
    RETURN_IF_ERROR(db.Run("PRAGMA user_version = 3; COMMIT;"));
    return db;
  }
  if (version == 1) RETURN_IF_ERROR(db.Run("ALTER TABLE snapshot RENAME TO whole;"));
  RETURN_IF_ERROR(
      db.Run("CREATE TABLE snapshot (sequence INTEGER NOT NULL, piece INTEGER NOT NULL,"
             " checksum INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (sequence, piece));"));
  if (version == 1) {
    RETURN_IF_ERROR(
        db.Run("INSERT INTO snapshot SELECT sequence, 0, checksum, bytes FROM whole;"
               "DROP TABLE whole;"));
  }
  RETURN_IF_ERROR(db.Run("PRAGMA user_version = 3; COMMIT;"));
  return db;
}

absl::StatusOr<SnapshotDb::Snapshot> SnapshotDb::Read() {
  sqlite3_stmt* raw = nullptr;
  int code = sqlite3_prepare_v2(
      db_.get(), "SELECT sequence, piece, checksum, bytes FROM snapshot ORDER BY sequence, piece",
      -1, &raw, nullptr);
  Statement statement(raw);
  Snapshot snapshot;
  while (code == SQLITE_OK || code == SQLITE_ROW) {
    code = sqlite3_step(raw);
    if (code == SQLITE_DONE) return snapshot;
    if (code != SQLITE_ROW) break;
    snapshot.sequence = static_cast<uint64_t>(sqlite3_column_int64(raw, 0));
    const auto piece = static_cast<size_t>(sqlite3_column_int64(raw, 1));
    const void* blob = sqlite3_column_blob(raw, 3);
    const auto size = static_cast<size_t>(sqlite3_column_bytes(raw, 3));
    if (piece != snapshot.pieces.size() || sqlite3_column_int64(raw, 2) != Checksum(blob, size)) {
      return absl::DataLossError(absl::StrCat("journal ", path_, ": piece ", snapshot.pieces.size(),
                                              " of the snapshot of record ", snapshot.sequence,
                                              " is damaged; restore the file from a copy"));
    }
    snapshot.pieces.emplace_back(static_cast<const char*>(blob), size);
  }
  return Error(code);
}

absl::Status SnapshotDb::Insert(uint64_t sequence, absl::Span<const std::string> pieces) {
  sqlite3_stmt* raw = nullptr;
  int code =
      sqlite3_prepare_v2(db_.get(), "INSERT INTO snapshot VALUES (?, ?, ?, ?)", -1, &raw, nullptr);
  Statement statement(raw);
  for (size_t i = 0; i < pieces.size() && code == SQLITE_OK; ++i) {
    const std::string& bytes = pieces[i];
    code = sqlite3_bind_int64(raw, 1, static_cast<int64_t>(sequence));
    if (code == SQLITE_OK) code = sqlite3_bind_int64(raw, 2, static_cast<int64_t>(i));
    if (code == SQLITE_OK) code = sqlite3_bind_int64(raw, 3, Checksum(bytes.data(), bytes.size()));
    if (code == SQLITE_OK) {
      code = sqlite3_bind_blob64(raw, 4, bytes.data(), bytes.size(), SQLITE_STATIC);
    }
    if (code == SQLITE_OK) code = sqlite3_step(raw);
    if (code == SQLITE_DONE) code = sqlite3_reset(raw);
  }
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

absl::Status SnapshotDb::Write(uint64_t sequence, absl::Span<const std::string> pieces) {
  absl::Status written = Run("BEGIN EXCLUSIVE; DELETE FROM snapshot;");
  if (written.ok()) written = Insert(sequence, pieces);
  if (written.ok()) written = Run("COMMIT");
  if (!written.ok()) Run("ROLLBACK").IgnoreError();  // the first error is the one to report
  return written;
}

absl::Status SnapshotDb::CheckThere() {
  int moved = 0;
  const int code = sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (code != SQLITE_OK) return Error(code);
  if (moved == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("journal ", path_, " was deleted or replaced"));
}

absl::StatusOr<std::unique_ptr<Journal>> OpenSqliteJournal(const std::string& work_dir,
                                                           Disk& disk) {
  RETURN_IF_ERROR(disk.MakeFolders(work_dir));
  ASSIGN_OR_RETURN(SnapshotDb db, SnapshotDb::Open(work_dir + "/journal.db"));
  return OpenLogJournal(work_dir, disk, std::make_unique<SnapshotDb>(std::move(db)),
                        absl::StrCat("sqlite:", work_dir));
}

}  // namespace penstock::control
