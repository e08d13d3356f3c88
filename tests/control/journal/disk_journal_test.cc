// SPDX-License-Identifier: Apache-2.0
// The promises of the journal on disk: what a cut, a damaged byte or a full disk does to it.
#include "tests/control/journal/disk_journal.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "control/env/disk.h"
#include "control/journal/log_format.h"
#include "control/journal/snapshot_db.h"
#include "control/observe/event_log.h"
#include "control/state/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/journal/any_journal.h"
#include "tests/eventually.h"

namespace penstock::control {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(SqliteJournalTest, ASnapshotReplacesTheLogsBefore) {
  {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    Fill(**journal, 1, 3);
    (*journal)->Snapshot(3, WholeSnapshot({"all ", "three"}));
    Fill(**journal, 4, 5);
  }
  EXPECT_FALSE(fs::exists(Log(1)));
  EXPECT_TRUE(fs::exists(Log(4)));
}

// No file can be opened while this object lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    // A sanitizer opens a pipe when it first meets an object's type. Both are used meanwhile.
    StderrEventLog()->Write({"no_descriptors", {}});
    DiskError(EMFILE, "open", "a file").IgnoreError();
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(SqliteJournalTest, GoesOnWithoutASnapshotWhereThereIsNoDescriptorForIt) {
  {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    Fill(**journal, 1, 3);
    {
      const NoDescriptors none;
      (*journal)->Snapshot(3, WholeSnapshot({"all three"}));
      Fill(**journal, 4, 5);
    }
    EXPECT_TRUE(fs::exists(Log(1)));
    (*journal)->Snapshot(5, WholeSnapshot({"all five"}));
    Fill(**journal, 6, 6);
  }
  EXPECT_FALSE(fs::exists(Log(1)));
  Recovered recovered = Reopen();
  EXPECT_THAT(recovered.snapshot, ElementsAre("all five"));
  EXPECT_EQ(recovered.last_sequence(), 6u);
}

// The log after the snapshot exists already.
TEST_F(SqliteJournalTest, GoesOnWithoutASnapshotThatFindsNoRoom) {
  std::signal(SIGXFSZ, SIG_IGN);
  const int64_t failed = FailedSnapshots();
  {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    Fill(**journal, 1, 3);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit full{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
    (*journal)->Snapshot(3, WholeSnapshot({std::string(1'000'000, 'x')}));
    Fill(**journal, 4, 5);
    EXPECT_TRUE(Eventually([&] { return FailedSnapshots() > failed; }));
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_TRUE(fs::exists(Log(4)));
    const std::string copy = folder_ + "_copy";  // the same as after kill -9
    fs::remove_all(copy);
    fs::copy(folder_, copy);
    auto restarted = OpenSqliteJournal(copy);
    ASSERT_TRUE(restarted.ok()) << restarted.status();
    EXPECT_EQ((*restarted)->TakeRecovered().records.size(), 5u);
    (*journal)->Snapshot(5, WholeSnapshot({"all five"}));
    Fill(**journal, 6, 6);
  }
  EXPECT_FALSE(fs::exists(Log(1)) || fs::exists(Log(4)));
  EXPECT_EQ(Reopen().last_sequence(), 6u);
}

// The same holds with a snapshot.
TEST_F(SqliteJournalTest, ARecordBeforeASkippedSnapshotIsKnownToBeDurable) {
  {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    const NoDescriptors none;
    (*journal)->Append(1, "record 1");
    (*journal)->Snapshot(1, WholeSnapshot({"one"}));
    EXPECT_TRUE((*journal)->WaitDurable(1).ok());
    journal->reset();  // returns after the snapshot
  }
  std::string bytes = ReadFile(Log());
  bytes[bytes.find("record 1")] ^= 1;
  WriteFile(Log(), bytes);
  EXPECT_EQ(OpenSqliteJournal(folder_).status().code(), absl::StatusCode::kDataLoss);
}

TEST(SnapshotDb, WritesAgainOnceThereAreDescriptors) {
  const std::string folder = NewFolder();
  fs::create_directories(folder);
  ASSERT_TRUE(SnapshotDb::Open(folder + "/journal.db").ok());
  // A database that has written nothing yet opens a file for its first transaction.
  absl::StatusOr<SnapshotDb> db = SnapshotDb::Open(folder + "/journal.db");
  ASSERT_TRUE(db.ok()) << db.status();
  {
    const NoDescriptors none;
    const absl::Status refused = db->Write(1, WholeSnapshot({"one"}));
    EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  }
  const absl::Status written = db->Write(2, WholeSnapshot({"two"}));
  EXPECT_TRUE(written.ok()) << written;
  EXPECT_THAT(db->Read()->pieces, ElementsAre("two"));
}

// The process was killed between the snapshot and the removal of the log that it contains.
TEST_F(SqliteJournalTest, SkipsRecordsThatTheSnapshotContains) {
  Write(1, 3);
  const std::string old = ReadFile(Log(1));
  {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    (*journal)->Snapshot(3, WholeSnapshot({"all ", "three"}));
    Fill(**journal, 4, 4);
  }
  WriteFile(Log(1), old);
  Recovered recovered = Reopen();
  EXPECT_EQ(recovered.snapshot_sequence, 3u);
  ASSERT_EQ(recovered.records.size(), 1u);
  EXPECT_EQ(recovered.records[0].sequence, 4u);
}

// Power was lost between the snapshot's log and its commit, with a part of the last mark on disk.
TEST_F(SqliteJournalTest, ATornMarkBeforeAWholeLogLosesNothing) {
  Write(1, 3);
  std::string mark;
  AppendMark(3, mark);
  const std::string old = ReadFile(Log(1));
  ASSERT_TRUE(old.ends_with(mark));
  for (size_t left : {size_t{1}, mark.size() / 2, mark.size() - 1}) {
    WriteFile(Log(1), old.substr(0, old.size() - mark.size() + left));
    WriteFile(Log(4), std::string(LogHeader()));
    EXPECT_EQ(Reopen().last_sequence(), 3u) << left;
    // Not if a record is missing.
    WriteFile(Log(1), old.substr(0, old.size() - mark.size() - 1));
    EXPECT_EQ(OpenSqliteJournal(folder_).status().code(), absl::StatusCode::kDataLoss);
  }
}

// No record counts as durable that cannot be read again.
TEST_F(SqliteJournalTest, ALogThatWasDeletedOrReplacedEndsIt) {
  for (const bool replaced : {false, true}) {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok()) << journal.status();
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    Fill(**journal, 1, 2);
    fs::remove(Log(1));
    if (replaced) WriteFile(Log(1), LogHeader());
    (*journal)->Append(3, "record 3");
    EXPECT_FALSE((*journal)->WaitDurable(3).ok());
    EXPECT_THAT(std::string((*journal)->status().message()), HasSubstr(Log(1)));
    journal->reset();
    fs::remove_all(folder_);
  }
}

// The logs that the snapshot would replace still contain everything.
TEST_F(SqliteJournalTest, ADeletedOrReplacedSnapshotFileKeepsTheLogs) {
  for (const bool replaced : {false, true}) {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok()) << journal.status();
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    Fill(**journal, 1, 3);
    const std::string db = folder_ + "/journal.db";
    const std::string copy = ReadFile(db);
    fs::remove(db);
    if (replaced) WriteFile(db, copy);
    (*journal)->Snapshot(3, WholeSnapshot({"all three"}));
    EXPECT_TRUE(Eventually([&] { return !(*journal)->status().ok(); }));
    (*journal)->Append(4, "record 4");
    EXPECT_FALSE((*journal)->WaitDurable(4).ok());
    EXPECT_THAT(std::string((*journal)->status().message()), HasSubstr("journal.db"));
    journal->reset();
    EXPECT_EQ(Reopen().last_sequence(), 3u);
    fs::remove_all(folder_);
  }
}

TEST_F(SqliteJournalTest, OnlyItsOwnerMayReadIt) {
  const std::string made = folder_ + "/made";
  auto journal = OpenSqliteJournal(made + "/below");
  ASSERT_TRUE(journal.ok()) << journal.status();
  journal->reset();
  const auto others = fs::perms::group_all | fs::perms::others_all;
  for (const std::string& path : {made, made + "/below", made + "/below/journal.db",
                                  made + "/below" + Log(1).substr(folder_.size())}) {
    EXPECT_EQ(fs::status(path).permissions() & others, fs::perms::none) << path;
  }
}

// Data that an earlier process could not sync may be only in the page cache.
TEST_F(SqliteJournalTest, EachStartRewritesTheLastLog) {
  Write(1, 3);
  const auto inode = [&] {
    struct stat about {};
    EXPECT_EQ(stat(Log(1).c_str(), &about), 0);
    return about.st_ino;
  };
  const std::string content = ReadFile(Log(1));
  const int keeps_the_number = open(Log(1).c_str(), O_RDONLY);
  const ino_t before = inode();
  EXPECT_EQ(Reopen().last_sequence(), 3u);
  EXPECT_NE(inode(), before);
  EXPECT_EQ(ReadFile(Log(1)), content);
  close(keeps_the_number);
}

TEST_F(SqliteJournalTest, CutAtAnyByteOfItsLastThreeRecordsKeepsTheRestAndSaysSo) {
  Write(1, 1);
  const std::string whole = SixGroups();
  const size_t record = kRecordHeaderBytes + std::string("record 1").size();
  ASSERT_EQ(whole.size(), kLogHeaderBytes + 6 * record);
  for (size_t size = kLogHeaderBytes + 3 * record; size < whole.size(); ++size) {
    WriteFile(Log(), whole.substr(0, size));
    Recovered recovered = Reopen();
    const size_t kept = (size - kLogHeaderBytes) / record;
    ASSERT_EQ(recovered.records.size(), kept) << "cut at " << size;
    const bool torn = (size - kLogHeaderBytes) % record != 0;
    EXPECT_EQ(recovered.cut.empty(), !torn) << "cut at " << size;
    if (torn) {
      EXPECT_THAT(recovered.cut, HasSubstr(absl::StrCat("record ", kept + 1)));
      // The torn part is removed, and appending goes on there.
      EXPECT_EQ(ReadFile(Log()).size(), kLogHeaderBytes + kept * record);
    }
  }
  Write(6, 7);
  EXPECT_EQ(Reopen().last_sequence(), 7u);
}

TEST_F(SqliteJournalTest, AnyFlippedBitInTheMiddleIsDataLossNamingTheRecord) {
  Write(1, 1);
  const std::string whole = SixGroups();
  const size_t record = kRecordHeaderBytes + std::string("record 1").size();
  const size_t begin = kLogHeaderBytes + 2 * record;  // of record 3
  for (size_t bit = 8 * begin; bit < 8 * (begin + record); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    absl::Status status = ParseLog(flipped, 1, /*next=*/std::nullopt, Log()).status();
    if (bit % 61 == 0) {  // the same through the whole journal, which syncs and is slow
      WriteFile(Log(), flipped);
      status = OpenSqliteJournal(folder_).status();
    }
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << "bit " << bit;
    ASSERT_THAT(status.message(), HasSubstr("record 3")) << "bit " << bit;
    ASSERT_THAT(status.message(), HasSubstr(Log())) << "bit " << bit;
  }
}

TEST_F(SqliteJournalTest, AnyFlippedBitOfTheLastRecordIsDataLossOnceThatIsMarkedAsDurable) {
  Write(1, 6);
  const std::string whole = ReadFile(Log());
  const size_t begin = whole.rfind("record 6") - kRecordHeaderBytes;
  for (size_t bit = 8 * begin; bit < 8 * (begin + kRecordHeaderBytes + 8); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    absl::Status status = ParseLog(flipped, 1, /*next=*/std::nullopt, Log()).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << "bit " << bit;
    ASSERT_THAT(status.message(), HasSubstr("record 6")) << "bit " << bit;
  }
}

TEST_F(SqliteJournalTest, AMarkThatIsTornOrDamagedAtTheEndLosesNothing) {
  std::string log = SixGroups();
  const size_t mark = log.size();
  AppendMark(6, log);
  for (size_t size = mark; size <= log.size(); ++size) {
    absl::StatusOr<ParsedLog> parsed = ParseLog(log.substr(0, size), 1, std::nullopt, "log");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->records.size(), 6u);
    EXPECT_EQ(parsed->valid_bytes, size == log.size() ? size : mark);
  }
  log[mark + 9] ^= 1;
  absl::StatusOr<ParsedLog> damaged = ParseLog(log, 1, std::nullopt, "log");
  ASSERT_TRUE(damaged.ok()) << damaged.status();
  EXPECT_EQ(damaged->records.size(), 6u);
}

TEST_F(SqliteJournalTest, AMarkThatStandsInTheWrongPlaceIsDataLoss) {
  std::string log = SixGroups();
  AppendMark(5, log);
  EXPECT_EQ(ParseLog(log, 1, std::nullopt, "log").status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(SqliteJournalTest, RecordsOfOneGroupThatReachedTheDiskOutOfOrderAreATornEnd) {
  std::string log = LogHeader();
  AppendRecord(1, 1, "durable", log);
  const size_t second = log.size();
  AppendRecord(2, 2, "written with the next", log);
  AppendRecord(3, 2, "written with the one before", log);
  log[second] = 0;
  absl::StatusOr<ParsedLog> parsed = ParseLog(log, 1, /*next=*/std::nullopt, "log");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->records.size(), 1u);
  EXPECT_EQ(parsed->valid_bytes, second);
  EXPECT_THAT(parsed->cut, HasSubstr("record 2"));
}

TEST_F(SqliteJournalTest, ADamagedSnapshotIsDataLoss) {
  {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    Fill(**journal, 1, 1);
    (*journal)->Snapshot(1, WholeSnapshot({"one", "a snapshot with a text that is easily found"}));
  }
  std::string db = ReadFile(folder_ + "/journal.db");
  const size_t at = db.find("easily found");
  ASSERT_NE(at, std::string::npos);
  db[at] ^= 1;
  WriteFile(folder_ + "/journal.db", db);
  absl::Status status = OpenSqliteJournal(folder_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("1 of the snapshot of record 1 is damaged"));
}

// Version 1 kept the snapshot in one row.
TEST_F(SqliteJournalTest, UpgradesTheEarlierFormat) {
  fs::create_directories(folder_);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ + "/journal.db").c_str(), &db), SQLITE_OK);
  const std::string made = absl::StrCat(
      "CREATE TABLE snapshot (sequence INTEGER PRIMARY KEY, checksum INTEGER NOT NULL,"
      " bytes BLOB NOT NULL); INSERT INTO snapshot VALUES (3, ",
      crc32(0, reinterpret_cast<const Bytef*>("all three"), 9),
      ", CAST('all three' AS BLOB)); PRAGMA user_version = 1;");
  ASSERT_EQ(sqlite3_exec(db, made.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  Recovered recovered = Reopen();
  EXPECT_EQ(recovered.snapshot_sequence, 3u);
  EXPECT_THAT(recovered.snapshot, ElementsAre("all three"));
  Write(4, 4);
  recovered = Reopen();
  EXPECT_THAT(recovered.snapshot, ElementsAre("all three"));
  EXPECT_EQ(recovered.last_sequence(), 4u);
}

// Version 3 numbered the pieces. Its snapshot stays until the next one is durable.
TEST_F(SqliteJournalTest, GoesOnFromTheSnapshotOfVersion3) {
  fs::create_directories(folder_);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ + "/journal.db").c_str(), &db), SQLITE_OK);
  const auto piece = [](int number, const std::string& bytes) {
    return absl::StrCat(
        "INSERT INTO snapshot VALUES (3, ", number, ", ",
        crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())),
        ", CAST('", bytes, "' AS BLOB));");
  };
  const std::string made = absl::StrCat(
      "CREATE TABLE snapshot (sequence INTEGER NOT NULL, piece INTEGER NOT NULL,"
      " checksum INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (sequence, piece));",
      piece(0, "all "), piece(1, "three"), "PRAGMA user_version = 3;");
  ASSERT_EQ(sqlite3_exec(db, made.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  EXPECT_THAT(Reopen().snapshot, ElementsAre("all ", "three"));
  Write(4, 4);
  Recovered recovered = Reopen();
  EXPECT_THAT(recovered.snapshot, ElementsAre("all ", "three"));
  EXPECT_EQ(recovered.snapshot_sequence, 3u);
  EXPECT_EQ(recovered.last_sequence(), 4u);
  {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    Fill(**journal, 5, 5);
    (*journal)->Snapshot(5, WholeSnapshot({"all five"}));
  }
  recovered = Reopen();
  EXPECT_THAT(recovered.snapshot, ElementsAre("all five"));
  EXPECT_EQ(recovered.snapshot_sequence, 5u);
}

TEST_F(SqliteJournalTest, AMissingLogIsDataLossNamingItsRecords) {
  Write(1, 3);
  fs::rename(Log(1), Log(3));
  absl::Status status = OpenSqliteJournal(folder_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("records 1 to 2"));
}

TEST_F(SqliteJournalTest, HasOneHolder) {
  auto first = OpenSqliteJournal(folder_);
  ASSERT_TRUE(first.ok());
  absl::Status second = OpenSqliteJournal(folder_).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(second.message(), HasSubstr(folder_));
  first->reset();
  EXPECT_TRUE(OpenSqliteJournal(folder_).ok());
}

TEST_F(SqliteJournalTest, OfANewerReleaseIsLeftAlone) {
  Write(1, 2);
  WriteFile(Log(), LogHeader(kLogVersion + 1));
  absl::Status newer_log = OpenSqliteJournal(folder_).status();
  EXPECT_EQ(newer_log.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(newer_log.message(), HasSubstr("version 2"));

  // SQLite stores the user version at offset 60 of its file.
  std::string db = ReadFile(folder_ + "/journal.db");
  db[63] = 9;
  WriteFile(folder_ + "/journal.db", db);
  absl::Status status = OpenSqliteJournal(folder_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("version 9"));
}

// A size limit for files acts as a disk that is full at that point.
TEST_F(SqliteJournalTest, AFullDiskStopsItAndSaysSo) {
  auto journal = OpenSqliteJournal(folder_);
  ASSERT_TRUE(journal.ok());
  absl::Status told;
  const absl::Status started = (*journal)->Start([&](absl::StatusOr<uint64_t> sequence) {
    if (!sequence.ok()) told = sequence.status();
  });
  ASSERT_TRUE(started.ok()) << started;
  Fill(**journal, 1, 2);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{.rlim_cur = fs::file_size(Log()) + 10, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  (*journal)->Append(3, "does not fit");
  absl::Status status = (*journal)->WaitDurable(3);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  // At record 3, or at the mark after record 2.
  EXPECT_THAT(status.message(), HasSubstr("free space and start again"));
  EXPECT_TRUE((*journal)->WaitDurable(2).ok());
  journal->reset();
  EXPECT_EQ(told, status);
  EXPECT_EQ(Reopen().last_sequence(), 2u);
}

}  // namespace
}  // namespace penstock::control
