// SPDX-License-Identifier: Apache-2.0
#include "control/journal/snapshot_db.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "control/env/disk.h"
#include "control/journal/checksum.h"
#include "control/journal/journal.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// Each also sets the version that the table belongs to.
static_assert(kJoinedVersion == 3 && kJournalVersion == 4, "the numbers below");
constexpr char kMakeJoined[] =
    "CREATE TABLE snapshot (sequence INTEGER NOT NULL, piece INTEGER NOT NULL,"
    " checksum INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (sequence, piece));"
    "PRAGMA user_version = 3;";
constexpr char kMakePieces[] =
    "CREATE TABLE pieces (key BLOB NOT NULL PRIMARY KEY, checksum INTEGER NOT NULL,"
    " bytes BLOB NOT NULL);"
    "CREATE TABLE taken (sequence INTEGER NOT NULL, pieces INTEGER NOT NULL);"
    "PRAGMA user_version = 4;";
constexpr char kDropAll[] =
    "DROP TABLE IF EXISTS pieces; DROP TABLE IF EXISTS taken; DROP TABLE IF EXISTS snapshot;";

std::string Blob(sqlite3_stmt* statement, int column) {
  const void* const bytes = sqlite3_column_blob(statement, column);
  return std::string(static_cast<const char*>(bytes),
                     static_cast<size_t>(sqlite3_column_bytes(statement, column)));
}

// Returns the checksum of a piece, which also finds a damaged key.
uint32_t ChecksumOf(std::string_view key, std::string_view bytes) {
  return Checksum(bytes.data(), bytes.size(), Checksum(key.data(), key.size()));
}

}  // namespace

void SnapshotDb::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

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

absl::StatusOr<SnapshotDb::Statement> SnapshotDb::Prepare(const char* sql) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v2(db_.get(), sql, -1, &raw, nullptr);
  Statement statement(raw);
  if (code != SQLITE_OK) return Error(code);
  return statement;
}

absl::StatusOr<int64_t> SnapshotDb::Number(const char* sql) {
  ASSIGN_OR_RETURN(const Statement statement, Prepare(sql));
  const int code = sqlite3_step(statement.get());
  if (code != SQLITE_ROW) return Error(code);
  return sqlite3_column_int64(statement.get(), 0);
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
  if (version >= kJoinedVersion) return db;
  RETURN_IF_ERROR(db.Run("BEGIN EXCLUSIVE;"));
  if (version == 0) RETURN_IF_ERROR(db.Run(kMakeJoined));
  if (version == 1) {
    RETURN_IF_ERROR(db.Run("ALTER TABLE snapshot RENAME TO whole;"));
    RETURN_IF_ERROR(db.Run(kMakeJoined));
    RETURN_IF_ERROR(
        db.Run("INSERT INTO snapshot SELECT sequence, 0, checksum, bytes FROM whole;"
               "DROP TABLE whole;"));
  }
  // Version 3 has the table of version 2, but a release before version 3 would ignore the past
  // iterations in it.
  if (version == 2) RETURN_IF_ERROR(db.Run("PRAGMA user_version = 3;"));
  RETURN_IF_ERROR(db.Run("COMMIT;"));
  return db;
}

absl::Status SnapshotDb::Damaged(const std::string& piece, uint64_t sequence) const {
  return absl::DataLossError(absl::StrCat("journal ", path_, ": ", piece,
                                          " of the snapshot of record ", sequence,
                                          " is damaged; restore the file from a copy"));
}

absl::StatusOr<SnapshotDb::Snapshot> SnapshotDb::ReadJoined() {
  ASSIGN_OR_RETURN(Statement statement,
                   Prepare("SELECT sequence, piece, checksum, bytes FROM snapshot"
                           " ORDER BY sequence, piece"));
  Snapshot snapshot;
  while (true) {
    const int code = sqlite3_step(statement.get());
    if (code == SQLITE_DONE) return snapshot;
    if (code != SQLITE_ROW) return Error(code);
    snapshot.sequence = static_cast<uint64_t>(sqlite3_column_int64(statement.get(), 0));
    const auto piece = static_cast<size_t>(sqlite3_column_int64(statement.get(), 1));
    std::string bytes = Blob(statement.get(), 3);
    if (piece != snapshot.pieces.size() ||
        sqlite3_column_int64(statement.get(), 2) != Checksum(bytes.data(), bytes.size())) {
      return Damaged(absl::StrCat("piece ", snapshot.pieces.size()), snapshot.sequence);
    }
    snapshot.pieces.push_back(std::move(bytes));
  }
}

absl::StatusOr<SnapshotDb::Snapshot> SnapshotDb::Read() {
  ASSIGN_OR_RETURN(const int64_t version, Number("PRAGMA user_version"));
  if (version < kJournalVersion) return ReadJoined();
  Snapshot snapshot;
  ASSIGN_OR_RETURN(const int64_t sequence, Number("SELECT sequence FROM taken"));
  ASSIGN_OR_RETURN(const int64_t pieces, Number("SELECT pieces FROM taken"));
  snapshot.sequence = static_cast<uint64_t>(sequence);
  ASSIGN_OR_RETURN(Statement statement,
                   Prepare("SELECT key, checksum, bytes FROM pieces ORDER BY key"));
  while (true) {
    const int code = sqlite3_step(statement.get());
    if (code == SQLITE_DONE) break;
    if (code != SQLITE_ROW) return Error(code);
    const std::string key = Blob(statement.get(), 0);
    std::string bytes = Blob(statement.get(), 2);
    if (sqlite3_column_int64(statement.get(), 1) != ChecksumOf(key, bytes))
      return Damaged(absl::StrCat("piece ", key), snapshot.sequence);
    snapshot.pieces.push_back(std::move(bytes));
  }
  if (static_cast<int64_t>(snapshot.pieces.size()) == pieces) return snapshot;
  return Damaged("the list of pieces", snapshot.sequence);
}

absl::Status SnapshotDb::Change(const SnapshotChanges& changes) {
  ASSIGN_OR_RETURN(Statement put, Prepare("INSERT OR REPLACE INTO pieces VALUES (?, ?, ?)"));
  ASSIGN_OR_RETURN(Statement remove, Prepare("DELETE FROM pieces WHERE key = ?"));
  for (const auto& [key, bytes] : changes.pieces) {
    sqlite3_stmt* const statement = bytes.has_value() ? put.get() : remove.get();
    int code = sqlite3_bind_blob64(statement, 1, key.data(), key.size(), SQLITE_STATIC);
    if (code == SQLITE_OK && bytes.has_value()) {
      code = sqlite3_bind_int64(statement, 2, ChecksumOf(key, *bytes));
      if (code == SQLITE_OK)
        code = sqlite3_bind_blob64(statement, 3, bytes->data(), bytes->size(), SQLITE_STATIC);
    }
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    if (code == SQLITE_DONE) code = sqlite3_reset(statement);
    if (code != SQLITE_OK) return Error(code);
  }
  return absl::OkStatus();
}

absl::Status SnapshotDb::WritePieces(uint64_t sequence, const SnapshotChanges& changes) {
  if (changes.whole) {
    RETURN_IF_ERROR(Run(kDropAll));
    RETURN_IF_ERROR(Run(kMakePieces));
  }
  RETURN_IF_ERROR(Change(changes));
  return Run(absl::StrCat("DELETE FROM taken;"
                          "INSERT INTO taken SELECT ",
                          sequence, ", count(*) FROM pieces;")
                 .c_str());
}

absl::Status SnapshotDb::WriteJoined(uint64_t sequence, const SnapshotChanges& changes) {
  RETURN_IF_ERROR(Run(kDropAll));
  RETURN_IF_ERROR(Run(kMakeJoined));
  ASSIGN_OR_RETURN(Statement put, Prepare("INSERT INTO snapshot VALUES (?, ?, ?, ?)"));
  int64_t number = 0;
  for (const auto& [key, bytes] : changes.pieces) {
    sqlite3_stmt* const statement = put.get();
    int code = sqlite3_bind_int64(statement, 1, static_cast<int64_t>(sequence));
    if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 2, number++);
    if (code == SQLITE_OK)
      code = sqlite3_bind_int64(statement, 3, Checksum(bytes->data(), bytes->size()));
    if (code == SQLITE_OK)
      code = sqlite3_bind_blob64(statement, 4, bytes->data(), bytes->size(), SQLITE_STATIC);
    if (code == SQLITE_OK) code = sqlite3_step(statement);
    if (code == SQLITE_DONE) code = sqlite3_reset(statement);
    if (code != SQLITE_OK) return Error(code);
  }
  return absl::OkStatus();
}

absl::Status SnapshotDb::Write(uint64_t sequence, const SnapshotChanges& changes) {
  absl::Status written = Run("BEGIN EXCLUSIVE;");
  if (written.ok())
    written = changes.joined ? WriteJoined(sequence, changes) : WritePieces(sequence, changes);
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

absl::StatusOr<std::unique_ptr<Journal>> OpenSqliteJournal(const std::string& work_dir, Disk& disk,
                                                           uint64_t term) {
  RETURN_IF_ERROR(disk.MakeFolders(work_dir));
  ASSIGN_OR_RETURN(SnapshotDb db, SnapshotDb::Open(work_dir + "/journal.db"));
  return OpenLogJournal(work_dir, disk, std::make_unique<SnapshotDb>(std::move(db)),
                        absl::StrCat("sqlite:", work_dir), term);
}

}  // namespace penstock::control
