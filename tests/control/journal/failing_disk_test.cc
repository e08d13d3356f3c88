// SPDX-License-Identifier: Apache-2.0
// The journal on a disk that fails at any of its operations and then loses power.
#include <filesystem>
#include <mutex>
#include <random>

#include "absl/strings/str_cat.h"
#include "control/env/fake_disk.h"
#include "control/journal/journal.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

std::string TextOf(uint64_t sequence) {
  return absl::StrCat("record ", sequence, std::string(sequence * 97 % 300, 'r'));
}

// The lives of a dispatcher on one disk.
class Lives {
 public:
  // SQLite writes to the folder itself, the journal to that of the same name on the disk.
  explicit Lives(FakeDisk& disk) : disk_(disk) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  // Opens the journal and checks what it holds. nullptr if the disk fails.
  std::unique_ptr<Journal> Open() {
    absl::StatusOr<std::unique_ptr<Journal>> journal = OpenSqliteJournal(folder_, disk_);
    opened_ = journal.status();
    if (!journal.ok()) return nullptr;
    const Recovered recovered = (*journal)->TakeRecovered();
    for (const Recovered::Record& record : recovered.records) {
      EXPECT_EQ(record.bytes, TextOf(record.sequence));
    }
    EXPECT_GE(recovered.last_sequence(), durable_);
    EXPECT_LE(recovered.last_sequence(), appended_);
    durable_ = appended_ = recovered.last_sequence();
    return *std::move(journal);
  }

  // A life that is first busy, then idle, and takes a snapshot.
  void Live() {
    const std::unique_ptr<Journal> journal = Open();
    if (journal == nullptr) return;
    const absl::Status started = journal->Start([this](absl::StatusOr<uint64_t> sequence) {
      std::lock_guard lock(mu_);
      if (sequence.ok()) durable_ = *sequence;
    });
    ASSERT_TRUE(started.ok()) << started;
    Append(*journal, 1);
    Append(*journal, 3);
    journal->Snapshot(appended_, {absl::StrCat("up to ", appended_)});
    Append(*journal, 2);
  }

  const absl::Status& opened() const { return opened_; }

 private:
  void Append(Journal& journal, int records) {
    for (int i = 0; i < records; ++i) {
      ++appended_;
      journal.Append(appended_, TextOf(appended_));
    }
    journal.WaitDurable(appended_).IgnoreError();  // fails with the disk
  }

  FakeDisk& disk_;
  const std::string folder_ = ::testing::TempDir() + "/journal_on_a_failing_disk";
  absl::Status opened_;
  uint64_t appended_ = 0;
  std::mutex mu_;
  uint64_t durable_ = 0;
};

// Lets each operation of two lives fail in turn, then loses power.
void FailAnywhere(const absl::Status& error, bool for_good) {
  bool failed = true;
  for (int64_t operation = 0; failed && !::testing::Test::HasFailure(); ++operation) {
    SCOPED_TRACE(absl::StrCat("operation ", operation));
    FakeDisk disk;
    Lives lives(disk);
    disk.FailAt(operation, error, for_good);
    lives.Live();
    lives.Live();
    failed = disk.operations() > operation;
    std::mt19937_64 random(static_cast<uint64_t>(operation));
    for (int time = 0; time < 2; ++time) {
      disk.LosePower(random);
      EXPECT_NE(lives.Open(), nullptr) << lives.opened();
    }
  }
}

TEST(JournalOnAFailingDisk, LosesNothingDurableWhenItsProcessIsKilled) {
  FailAnywhere(absl::AbortedError("killed"), /*for_good=*/true);
}

TEST(JournalOnAFailingDisk, LosesNothingDurableWhenOneOperationFails) {
  FailAnywhere(absl::InternalError("an I/O error"), /*for_good=*/false);
}

TEST(JournalOnAFailingDisk, LosesNothingDurableWhenTheDiskIsFullForAMoment) {
  FailAnywhere(absl::ResourceExhaustedError("full"), /*for_good=*/false);
}

}  // namespace
}  // namespace penstock::control
