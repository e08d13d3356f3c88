// SPDX-License-Identifier: Apache-2.0
// One suite for all journals.
#include "control/journal/journal.h"

#include <mutex>

#include "absl/strings/str_cat.h"
#include "control/journal/log_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/journal/any_journal.h"
#include "tests/control/journal/disk_journal.h"

namespace penstock::control {
namespace {

using ::testing::ElementsAre;

class MemoryPlace final : public JournalPlace {
 public:
  absl::StatusOr<std::unique_ptr<Journal>> Open() override { return OpenMemoryJournal(); }
};

class SqlitePlace final : public JournalPlace {
 public:
  absl::StatusOr<std::unique_ptr<Journal>> Open() override { return OpenSqliteJournal(folder_); }

 private:
  const std::string folder_ = NewFolder();
};

JournalKind InMemory() {
  return {.name = "Memory", .make = [] { return std::make_unique<MemoryPlace>(); }};
}
JournalKind OnDisk() {
  return {.name = "Sqlite", .make = [] { return std::make_unique<SqlitePlace>(); }};
}

TEST_P(AnyJournal, ReportsDurableRecordsInOrder) {
  auto journal = Open();
  std::mutex mu;
  std::vector<uint64_t> said;
  EXPECT_TRUE(journal->TakeRecovered().records.empty());
  const absl::Status started = journal->Start([&](absl::StatusOr<uint64_t> sequence) {
    std::lock_guard lock(mu);
    said.push_back(*sequence);
  });
  ASSERT_TRUE(started.ok()) << started;
  for (uint64_t i = 1; i <= 100; ++i) journal->Append(i, "record");
  ASSERT_TRUE(journal->WaitDurable(100).ok());
  journal.reset();
  EXPECT_TRUE(std::is_sorted(said.begin(), said.end()));
  EXPECT_EQ(said.back(), 100u);
}

TEST_P(AnyJournal, TakesASnapshotWithoutLosingLaterRecords) {
  auto journal = Open();
  ASSERT_TRUE(journal->Start([](absl::StatusOr<uint64_t>) {}).ok());
  Fill(*journal, 1, 3);
  journal->Snapshot(3, WholeSnapshot({"all three"}));
  Fill(*journal, 4, 5);
  EXPECT_TRUE(journal->status().ok());
}

TEST_P(DurableJournal, KeepsDurableRecords) {
  {
    auto journal = OpenAndStart();
    Fill(*journal, 1, 5);
  }
  Recovered recovered = Reopen();
  ASSERT_EQ(recovered.records.size(), 5u);
  EXPECT_EQ(recovered.records[4].sequence, 5u);
  EXPECT_EQ(recovered.records[4].bytes, "record 5");
  EXPECT_EQ(recovered.cut, "");
}

TEST_P(DurableJournal, GoesOnAfterASnapshot) {
  {
    auto journal = OpenAndStart();
    Fill(*journal, 1, 3);
    journal->Snapshot(3, WholeSnapshot({"all ", "three"}));
    Fill(*journal, 4, 5);
  }
  {
    auto journal = OpenAndStart();
    Recovered recovered = journal->TakeRecovered();
    EXPECT_THAT(recovered.snapshot, ElementsAre("all ", "three"));
    EXPECT_EQ(recovered.snapshot_sequence, 3u);
    ASSERT_EQ(recovered.records.size(), 2u);
    EXPECT_EQ(recovered.records[0].sequence, 4u);
    Fill(*journal, 6, 6);
    journal->Snapshot(6, WholeSnapshot({"all six"}));
    journal->Snapshot(6, WholeSnapshot({"all six again"}));
  }
  {
    auto journal = OpenAndStart();
    EXPECT_EQ(journal->TakeRecovered().last_sequence(), 6u);
    Fill(*journal, 7, 7);
  }
  Recovered recovered = Reopen();
  EXPECT_THAT(recovered.snapshot, ElementsAre("all six again"));
  EXPECT_EQ(recovered.snapshot_sequence, 6u);
  EXPECT_EQ(recovered.last_sequence(), 7u);
}

TEST_P(DurableJournal, KeepsRecordsAndSnapshotsOfAnySize) {
  std::vector<std::string> records;
  for (const size_t size : {0, 1, 600'000, 600'000, 1 << 20, 3'000'000, 10}) {
    records.push_back(std::string(size, static_cast<char>('a' + records.size())));
  }
  const std::vector<std::string> pieces = {std::string(5'000'000, 'x'), "", "small"};
  const auto append = [&](Journal& journal, uint64_t after) {
    for (size_t i = 0; i < records.size(); ++i) journal.Append(after + i + 1, records[i]);
    EXPECT_TRUE(journal.WaitDurable(after + records.size()).ok()) << journal.status();
  };
  const auto is_whole = [&](const Recovered& recovered) {
    ASSERT_EQ(recovered.records.size(), records.size());
    for (size_t i = 0; i < records.size(); ++i) EXPECT_EQ(recovered.records[i].bytes, records[i]);
  };
  append(*OpenAndStart(), 0);
  {
    auto journal = OpenAndStart();
    is_whole(journal->TakeRecovered());
    journal->Snapshot(records.size(), WholeSnapshot(pieces));
    append(*journal, records.size());
  }
  Recovered recovered = Reopen();
  EXPECT_EQ(recovered.snapshot, pieces);
  is_whole(recovered);
}

// The journal writes the records together, as far as it likes.
TEST_P(DurableJournal, ASnapshotKeepsTheRecordsAfterIt) {
  const auto append = [](Journal& journal, uint64_t first, uint64_t last) {
    for (uint64_t i = first; i <= last; ++i) journal.Append(i, absl::StrCat("record ", i));
  };
  const auto is_kept = [](const Recovered& recovered, uint64_t snapshot, uint64_t last) {
    EXPECT_EQ(recovered.snapshot_sequence, snapshot);
    ASSERT_EQ(recovered.records.size(), last - snapshot);
    for (const Recovered::Record& record : recovered.records)
      EXPECT_EQ(record.bytes, absl::StrCat("record ", record.sequence));
    EXPECT_EQ(recovered.last_sequence(), last);
  };
  {
    auto journal = OpenAndStart();
    append(*journal, 1, 20);
    journal->Snapshot(3, WholeSnapshot({"three"}));
    journal->Snapshot(7, WholeSnapshot({"seven"}));
    append(*journal, 21, 30);
    journal->Snapshot(19, WholeSnapshot({"nineteen"}));
  }
  {
    auto journal = OpenAndStart();
    is_kept(journal->TakeRecovered(), 19, 30);
    journal->Snapshot(25, WholeSnapshot({"twenty-five"}));
    append(*journal, 31, 40);
  }
  {
    auto journal = OpenAndStart();
    is_kept(journal->TakeRecovered(), 25, 40);
    journal->Snapshot(40, WholeSnapshot({"forty"}));
    append(*journal, 41, 42);
  }
  const Recovered recovered = Reopen();
  is_kept(recovered, 40, 42);
  EXPECT_THAT(recovered.snapshot, ElementsAre("forty"));
}

INSTANTIATE_TEST_SUITE_P(Journals, AnyJournal, ::testing::Values(InMemory(), OnDisk()), NameOf);
INSTANTIATE_TEST_SUITE_P(Journals, DurableJournal, ::testing::Values(OnDisk()), NameOf);

}  // namespace
}  // namespace penstock::control
