// SPDX-License-Identifier: Apache-2.0
// The release before reads what a dispatcher writes until an upgrade is finalised.
#include "tests/releases/first_format.h"

#include <sqlite3.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "control/journal/changes_proto.h"
#include "control/journal/checksum.h"
#include "control/journal/journal.h"
#include "control/state/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/releases/recorded_changes.h"
#include "tests/releases/recording.h"

namespace penstock::control {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

// A snapshot as the release before reads it. nullopt, with a failure, if it would refuse the file.
struct OldSnapshot {
  int64_t sequence = 0;
  std::vector<std::string> pieces;
};

std::optional<OldSnapshot> ReadOldFile(const std::string& work_dir) {
  sqlite3* raw = nullptr;
  EXPECT_EQ(sqlite3_open((work_dir + "/journal.db").c_str(), &raw), SQLITE_OK);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> db(raw, sqlite3_close);
  const auto prepare = [&](const char* sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(raw, sql, -1, &statement, nullptr), SQLITE_OK) << sql;
    return std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>(statement, sqlite3_finalize);
  };
  const auto version = prepare("PRAGMA user_version");
  if (sqlite3_step(version.get()) != SQLITE_ROW) return std::nullopt;
  EXPECT_EQ(sqlite3_column_int64(version.get(), 0), 3);
  if (sqlite3_column_int64(version.get(), 0) != 3) return std::nullopt;
  OldSnapshot snapshot;
  const auto rows =
      prepare("SELECT sequence, piece, checksum, bytes FROM snapshot ORDER BY sequence, piece");
  while (sqlite3_step(rows.get()) == SQLITE_ROW) {
    if (!snapshot.pieces.empty()) {
      EXPECT_EQ(sqlite3_column_int64(rows.get(), 0), snapshot.sequence) << "two snapshots";
    }
    snapshot.sequence = sqlite3_column_int64(rows.get(), 0);
    EXPECT_EQ(sqlite3_column_int64(rows.get(), 1), static_cast<int64_t>(snapshot.pieces.size()));
    const std::string bytes(static_cast<const char*>(sqlite3_column_blob(rows.get(), 3)),
                            static_cast<size_t>(sqlite3_column_bytes(rows.get(), 3)));
    EXPECT_EQ(sqlite3_column_int64(rows.get(), 2), Checksum(bytes.data(), bytes.size()));
    snapshot.pieces.push_back(bytes);
  }
  return snapshot;
}

std::string NewWorkDir() {
  const std::string folder = ::testing::TempDir() + "/first_format";
  fs::remove_all(folder);
  return folder;
}

// Takes a snapshot of the state in the journal, after one more record. `changes` are the record's.
void TakeSnapshot(const std::string& work_dir, const State& state,
                  absl::Span<const Change> changes = {}) {
  auto journal = OpenSqliteJournal(work_dir);
  ASSERT_TRUE(journal.ok()) << journal.status();
  const uint64_t next = (*journal)->TakeRecovered().last_sequence() + 1;
  ASSERT_TRUE((*journal)->Start([](const absl::StatusOr<uint64_t>&) {}).ok());
  (*journal)->Append(next, EncodeChanges(changes, state).value());
  ASSERT_TRUE((*journal)->WaitDurable(next).ok());
  (*journal)->Snapshot(next, EncodeSnapshot(state).value());
}

// FormatFinalised is what makes the release before refuse the journal.
TEST(FirstFormat, HasExactlyTheChangesThatTheReleaseBeforeReads) {
  State state;
  size_t refused = 0;
  for (const auto& [name, change] : RecordedChanges()) {
    state.Apply(change);
    const absl::Status read = first_format::Read(EncodeChanges({change}, state).value());
    const bool is_first =
        FormatOf(change) == kFirstFormat && !std::holds_alternative<FormatFinalised>(change);
    EXPECT_EQ(read.ok(), is_first) << name << ": " << read;
    if (!read.ok()) ++refused;
  }
  EXPECT_GE(refused, 4u) << "nothing is tested";
}

TEST(FirstFormat, HasSnapshotsThatTheReleaseBeforeReads) {
  const std::string work_dir = NewWorkDir();
  State state;
  for (const auto& [name, change] : RecordedChanges()) {
    if (FormatOf(change) != kFirstFormat || std::holds_alternative<FormatFinalised>(change))
      continue;
    ASSERT_TRUE(Fits(state, change).ok()) << name << ": " << Fits(state, change);
    state.Apply(change);
    TakeSnapshot(work_dir, state, {change});
    const std::optional<OldSnapshot> snapshot = ReadOldFile(work_dir);
    ASSERT_TRUE(snapshot.has_value()) << name;
    ASSERT_FALSE(snapshot->pieces.empty()) << name;
    const absl::Status read = first_format::ReadSnapshot(snapshot->pieces);
    EXPECT_TRUE(read.ok()) << name << ": " << read;
    absl::StatusOr<State> decoded = DecodeState(snapshot->pieces);
    ASSERT_TRUE(decoded.ok()) << name << ": " << decoded.status();
    EXPECT_EQ(EncodeState(*decoded), EncodeState(state)) << name;
  }
  EXPECT_EQ(state.iterations.size(), 3u) << "nothing is tested";
}

TEST(FirstFormat, EndsWithTheFirstSnapshotAfterFinalising) {
  const std::string work_dir = NewWorkDir();
  State state;
  TakeSnapshot(work_dir, state);
  ASSERT_TRUE(ReadOldFile(work_dir).has_value());
  state.Apply(FormatFinalised{kNewestFormat});
  TakeSnapshot(work_dir, state);
  auto journal = OpenSqliteJournal(work_dir);
  ASSERT_TRUE(journal.ok()) << journal.status();
  const absl::Status read = first_format::ReadSnapshot((*journal)->TakeRecovered().snapshot);
  EXPECT_THAT(std::string(read.message()), HasSubstr("does not know field 600 of Snapshot"));
}

TEST(FirstFormat, StaysWhenAJournalOfTheReleaseBeforeIsOpened) {
  for (const std::string& release : RecordedReleases()) {
    const std::string work_dir = NewWorkDir();
    fs::copy(release + "/journal", work_dir);
    const std::optional<OldSnapshot> before = ReadOldFile(work_dir);
    ASSERT_TRUE(before.has_value()) << release;
    ASSERT_TRUE(OpenSqliteJournal(work_dir).ok()) << release;
    const std::optional<OldSnapshot> after = ReadOldFile(work_dir);
    ASSERT_TRUE(after.has_value()) << release;
    EXPECT_EQ(after->sequence, before->sequence);
    EXPECT_EQ(after->pieces, before->pieces);
  }
}

// The reader itself: it refuses what that release refuses.
TEST(FirstFormat, ReadsNoPartsOfAnIteration) {
  State state;
  for (const auto& [name, change] : RecordedChanges()) {
    if (name == "iteration_retired") break;
    state.Apply(change);
  }
  const absl::Status read = first_format::ReadSnapshot(EncodeState(state).value());
  EXPECT_THAT(std::string(read.message()), HasSubstr("is in two pieces"));
}

}  // namespace
}  // namespace penstock::control
