// SPDX-License-Identifier: Apache-2.0
// Runs a journal on a disk that fails at any of its operations and then loses power. It must open
// again with every record that it reported as durable.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "control/env/fake_disk.h"
#include "control/journal/journal.h"
#include "gtest/gtest.h"

namespace penstock::control {

using OpenJournal = std::function<absl::StatusOr<std::unique_ptr<Journal>>(Disk& disk)>;

// The lives of a dispatcher on one disk.
class LivesOnADisk {
 public:
  LivesOnADisk(FakeDisk& disk, OpenJournal open) : disk_(disk), open_(std::move(open)) {}

  // Opens the journal and checks what it holds. nullptr if the disk fails.
  std::unique_ptr<Journal> Open() {
    absl::StatusOr<std::unique_ptr<Journal>> journal = open_(disk_);
    opened_ = journal.status();
    if (!journal.ok()) return nullptr;
    const Recovered recovered = (*journal)->TakeRecovered();
    for (const Recovered::Record& record : recovered.records) {
      EXPECT_EQ(record.bytes, TextOf(record.sequence));
    }
    if (recovered.snapshot_sequence > 0) {
      EXPECT_EQ(recovered.snapshot, SnapshotOf(recovered.snapshot_sequence));
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
    journal->Snapshot(appended_, WholeSnapshot(SnapshotOf(appended_)));
    Append(*journal, 2);
  }

  const absl::Status& opened() const { return opened_; }

 private:
  static std::string TextOf(uint64_t sequence) {
    return absl::StrCat("record ", sequence, std::string(sequence * 97 % 300, 'r'));
  }
  static std::vector<std::string> SnapshotOf(uint64_t sequence) {
    return {absl::StrCat("up to ", sequence), std::string(sequence * 31, 's')};
  }
  void Append(Journal& journal, int records) {
    for (int i = 0; i < records; ++i) {
      ++appended_;
      journal.Append(appended_, TextOf(appended_));
    }
    journal.WaitDurable(appended_).IgnoreError();  // fails with the disk
  }

  FakeDisk& disk_;
  const OpenJournal open_;
  absl::Status opened_;
  uint64_t appended_ = 0;
  std::mutex mu_;
  uint64_t durable_ = 0;
};

// Lets each operation of two lives fail in turn, then loses power. `new_journal`: makes an empty
// folder for a journal outside of the disk, if it needs one, and returns how to open the journal.
inline void FailAnywhere(const std::function<OpenJournal()>& new_journal, const absl::Status& error,
                         bool for_good) {
  bool failed = true;
  for (int64_t operation = 0; failed && !::testing::Test::HasFailure(); ++operation) {
    SCOPED_TRACE(absl::StrCat("operation ", operation));
    FakeDisk disk;
    LivesOnADisk lives(disk, new_journal());
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

}  // namespace penstock::control
