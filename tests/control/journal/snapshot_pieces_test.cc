// SPDX-License-Identifier: Apache-2.0
// Snapshots of the journal on disk, piece by piece.
#include <sqlite3.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <semaphore>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "control/env/disk.h"
#include "control/journal/changes_proto.h"
#include "control/journal/log_format.h"
#include "control/journal/snapshot_db.h"
#include "control/observe/event_log.h"
#include "control/state/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/journal/any_journal.h"
#include "tests/control/journal/disk_journal.h"
#include "tests/eventually.h"

namespace penstock::control {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

// Returns the file's version, and the names of its tables.
std::pair<int, std::set<std::string>> LayoutOf(const std::string& path) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  std::pair<int, std::set<std::string>> layout;
  const auto set_version = [](void* to, int, char** values, char**) {
    return absl::SimpleAtoi(values[0], static_cast<int*>(to)) ? 0 : 1;
  };
  const auto add_table = [](void* to, int, char** values, char**) {
    static_cast<std::set<std::string>*>(to)->insert(values[0]);
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(db, "PRAGMA user_version", set_version, &layout.first, nullptr),
            SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, "SELECT name FROM sqlite_master WHERE type = 'table'", add_table,
                         &layout.second, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  return layout;
}

TEST_F(SqliteJournalTest, TheFirstSnapshotInPiecesRaisesTheVersion) {
  using Tables = std::set<std::string>;
  const std::string path = folder_ + "/journal.db";
  Reopen();
  EXPECT_EQ(LayoutOf(path), std::pair(3, Tables{"snapshot"}));
  State state;
  const auto take = [&](uint64_t sequence) {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    Fill(**journal, sequence, sequence);
    (*journal)->Snapshot(sequence, EncodeSnapshot(state).value());
  };
  for (const uint64_t sequence : {1, 2}) {
    ++state.next_job;
    take(sequence);
    EXPECT_EQ(LayoutOf(path), std::pair(3, Tables{"snapshot"}));
    const Recovered recovered = Reopen();
    EXPECT_EQ(recovered.snapshot_sequence, sequence);
    EXPECT_EQ(recovered.snapshot.size(), 1u);
    EXPECT_EQ(EncodeState(DecodeState(recovered.snapshot).value()), EncodeState(state));
  }
  state.format = kPiecesFormat;
  take(3);
  EXPECT_EQ(LayoutOf(path), std::pair(4, (Tables{"pieces", "taken"})));
  const Recovered recovered = Reopen();
  EXPECT_EQ(recovered.snapshot_sequence, 3u);
  EXPECT_EQ(recovered.snapshot, EncodeState(state).value());
}

TEST_F(SqliteJournalTest, ASnapshotChangesOnlyThePiecesThatItNames) {
  {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    Fill(**journal, 1, 1);
    (*journal)->Snapshot(1, {{{"a", "a1"}, {"b", "b1"}, {"c", "c1"}}, /*whole=*/true});
    Fill(**journal, 2, 2);
    (*journal)->Snapshot(2, {{{"b", "b2"}, {"c", std::nullopt}, {"never", std::nullopt}}});
  }
  Recovered recovered = Reopen();
  EXPECT_THAT(recovered.snapshot, ElementsAre("a1", "b2"));
  EXPECT_EQ(recovered.snapshot_sequence, 2u);
  {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    (*journal)->Snapshot(2, {{{"z", "z3"}}, /*whole=*/true});
  }
  EXPECT_THAT(Reopen().snapshot, ElementsAre("z3"));
}

TEST_F(SqliteJournalTest, AMissingPieceIsDataLoss) {
  {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    Fill(**journal, 1, 1);
    (*journal)->Snapshot(1, WholeSnapshot({"one", "two"}));
  }
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ + "/journal.db").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "DELETE FROM pieces WHERE bytes = CAST('two' AS BLOB)", nullptr,
                         nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  EXPECT_EQ(OpenSqliteJournal(folder_).status().code(), absl::StatusCode::kDataLoss);
}

// The changes of a snapshot that finds no room are in the next one.
TEST_F(SqliteJournalTest, TheNextSnapshotHasTheChangesOfOneThatFailed) {
  std::signal(SIGXFSZ, SIG_IGN);
  const int64_t failed = FailedSnapshots();
  {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    Fill(**journal, 1, 1);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit full{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &full);
    const std::string large(1'000'000, 'a');
    (*journal)->Snapshot(1, {{{"a", large}, {"b", "b1"}}, /*whole=*/true});
    EXPECT_TRUE(Eventually([&] { return FailedSnapshots() > failed; }));
    setrlimit(RLIMIT_FSIZE, &before);
    Fill(**journal, 2, 2);
    (*journal)->Snapshot(2, {{{"b", "b2"}}});
  }
  Recovered recovered = Reopen();
  ASSERT_EQ(recovered.snapshot.size(), 2u);
  EXPECT_EQ(recovered.snapshot[0].size(), 1'000'000u);
  EXPECT_EQ(recovered.snapshot[1], "b2");
}

// A snapshot may be of an earlier record than the last one.
TEST_F(SqliteJournalTest, ASnapshotKeepsTheRecordsAfterIt) {
  {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    Fill(**journal, 1, 5);
    (*journal)->Snapshot(3, WholeSnapshot({"all three"}));
    Fill(**journal, 6, 7);
  }
  EXPECT_TRUE(fs::exists(Log(1)) && fs::exists(Log(6)));
  Recovered recovered = Reopen();
  EXPECT_EQ(recovered.snapshot_sequence, 3u);
  ASSERT_EQ(recovered.records.size(), 4u);
  EXPECT_EQ(recovered.records[0].bytes, "record 4");
  {
    auto journal = OpenSqliteJournal(folder_);
    ASSERT_TRUE(journal.ok());
    ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    (*journal)->Snapshot(6, WholeSnapshot({"all six"}));
  }
  EXPECT_FALSE(fs::exists(Log(1)));
  EXPECT_EQ(Reopen().last_sequence(), 7u);
}

// A store whose writes wait until the test lets them go on.
class SlowStore final : public SnapshotStore {
 public:
  explicit SlowStore(std::binary_semaphore& goes_on) : goes_on_(goes_on) {}
  absl::StatusOr<Snapshot> Read() override { return Snapshot(); }
  absl::Status Write(uint64_t /*sequence*/, const SnapshotChanges& /*changes*/) override {
    goes_on_.acquire();
    return absl::OkStatus();
  }
  absl::Status CheckThere() override { return absl::OkStatus(); }

 private:
  std::binary_semaphore& goes_on_;
};

TEST_F(SqliteJournalTest, TheLogDoesNotWaitForASnapshot) {
  fs::create_directories(folder_);
  std::binary_semaphore goes_on(0);
  auto journal = OpenLogJournal(folder_, LocalDisk(), std::make_unique<SlowStore>(goes_on), "slow");
  ASSERT_TRUE(journal.ok()) << journal.status();
  ASSERT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
  Fill(**journal, 1, 3);
  (*journal)->Snapshot(3, WholeSnapshot({"all three"}));
  Fill(**journal, 4, 100);  // each waits until it is durable
  EXPECT_TRUE(fs::exists(Log(1))) << "the snapshot that replaces it is not durable";
  goes_on.release();
  EXPECT_TRUE(Eventually([&] { return !fs::exists(Log(1)); }));
}

}  // namespace
}  // namespace penstock::control
