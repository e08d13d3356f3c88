// SPDX-License-Identifier: Apache-2.0
// Two leaders with one journal's directory, on a file system whose locks keep neither out.
#include "control/journal/leader_file.h"

#include <filesystem>
#include <functional>

#include "absl/strings/str_cat.h"
#include "control/journal/journal.h"
#include "control/journal/snapshot_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/etcd/test_folder.h"
#include "tests/eventually.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

// A snapshot that both leaders reach.
class SharedSnapshots final : public SnapshotStore {
 public:
  // `on_write`: called after each write.
  SharedSnapshots(std::shared_ptr<Snapshot> shared, std::function<void()> on_write)
      : shared_(std::move(shared)), on_write_(std::move(on_write)) {}
  absl::StatusOr<Snapshot> Read() override { return *shared_; }
  absl::Status Write(uint64_t sequence, const SnapshotChanges& changes) override {
    EXPECT_TRUE(changes.whole);
    *shared_ = {.sequence = sequence};
    for (const auto& [key, piece] : changes.pieces) shared_->pieces.push_back(*piece);
    on_write_();
    return absl::OkStatus();
  }
  absl::Status CheckThere() override { return absl::OkStatus(); }

 private:
  const std::shared_ptr<Snapshot> shared_;
  const std::function<void()> on_write_;
};

class LeaderFileTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Journal>> Open(uint64_t term) {
    return OpenLogJournal(folder_, LocalDisk(),
                          std::make_unique<SharedSnapshots>(snapshot_, [this] { on_write_(); }),
                          "test", term);
  }
  std::unique_ptr<Journal> StartAs(uint64_t term) {
    auto journal = Open(term);
    EXPECT_TRUE(journal.ok()) << journal.status();
    if (!journal.ok()) return OpenMemoryJournal();
    EXPECT_TRUE((*journal)->Start([](absl::StatusOr<uint64_t>) {}).ok());
    return *std::move(journal);
  }
  static absl::Status WriteAs(Journal& journal, uint64_t sequence, const std::string& who) {
    journal.Append(sequence, absl::StrCat("record ", sequence, " of ", who));
    return journal.WaitDurable(sequence);
  }
  static void IsReplaced(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("leads no longer"));
  }

  const std::string folder_ = NewTestFolder();
  const std::shared_ptr<SnapshotStore::Snapshot> snapshot_ =
      std::make_shared<SnapshotStore::Snapshot>();
  std::function<void()> on_write_ = [] {};
};

TEST_F(LeaderFileTest, ALaterLeaderKeepsTheOneBeforeOut) {
  auto old = StartAs(7);
  ASSERT_TRUE(WriteAs(*old, 1, "old").ok());
  auto present = StartAs(9);
  EXPECT_EQ(present->TakeRecovered().last_sequence(), 1u);
  IsReplaced(WriteAs(*old, 2, "old"));
  ASSERT_TRUE(WriteAs(*present, 2, "present").ok());
  IsReplaced(Open(7).status());
  present.reset();
  old.reset();
  auto journal = Open(9);  // the same leader
  ASSERT_TRUE(journal.ok()) << journal.status();
  const Recovered recovered = (*journal)->TakeRecovered();
  ASSERT_EQ(recovered.records.size(), 2u);
  EXPECT_EQ(recovered.records[1].bytes, "record 2 of present");
}

TEST_F(LeaderFileTest, ALeaderThatWasReplacedTakesNoSnapshot) {
  auto old = StartAs(1);
  ASSERT_TRUE(WriteAs(*old, 1, "old").ok());
  auto present = StartAs(2);
  old->Snapshot(1, WholeSnapshot({"of the old one"}));
  old->Append(2, "record 2 of old");
  IsReplaced(old->WaitDurable(2));
  ASSERT_TRUE(WriteAs(*present, 2, "present").ok());
  old.reset();
  present.reset();
  auto journal = Open(3);
  ASSERT_TRUE(journal.ok()) << journal.status();
  const Recovered recovered = (*journal)->TakeRecovered();
  EXPECT_TRUE(recovered.snapshot.empty());
  EXPECT_EQ(recovered.last_sequence(), 2u);
}

TEST_F(LeaderFileTest, ALeaderThatIsReplacedDuringASnapshotRemovesNoLog) {
  on_write_ = [this] { ASSERT_TRUE(LeaderFile::Take(LocalDisk(), folder_, 2).ok()); };
  auto old = StartAs(1);
  ASSERT_TRUE(WriteAs(*old, 1, "old").ok());
  old->Snapshot(1, WholeSnapshot({"up to 1"}));
  ASSERT_TRUE(Eventually([&] { return !old->status().ok(); }));
  IsReplaced(old->status());
  old.reset();
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/changes-00000000000000000001.log"));
  auto journal = Open(2);
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_EQ((*journal)->TakeRecovered().last_sequence(), 1u);
}

TEST_F(LeaderFileTest, ADamagedFileIsNamed) {
  ASSERT_TRUE(LeaderFile::Take(LocalDisk(), folder_, 3).ok());
  std::filesystem::resize_file(folder_ + "/leader", 0);
  const absl::Status refused = Open(4).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr(folder_ + "/leader"));
}

TEST_F(LeaderFileTest, NeedsNoFileWithoutStandbys) {
  auto journal = StartAs(0);
  ASSERT_TRUE(WriteAs(*journal, 1, "one").ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/leader"));
}

}  // namespace
}  // namespace penstock::control
