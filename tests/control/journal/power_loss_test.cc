// SPDX-License-Identifier: Apache-2.0
// The journal on disk when power is lost after any of its calls: it opens again, with every record
// that it reported as durable. Also when a call fails.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/journal/journal.h"
#include "control/journal/log_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/journal/forgetful_files.h"
#include "tests/eventually.h"

namespace penstock::control {
namespace {

namespace fs = std::filesystem;

std::string NewFolder(const std::string& name) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/power_", name);
  fs::remove_all(folder);
  return folder;
}

std::string RecordOf(uint64_t sequence) {
  return absl::StrCat("record ", sequence, std::string(sequence * 97 % 300, 'r'));
}

std::vector<std::string> SnapshotOf(uint64_t sequence) {
  return {absl::StrCat("the first ", sequence), std::string(6000 + sequence, 's')};
}

// A journal in a folder two levels below that of `files`, and the records it reported as durable.
class Life {
 public:
  explicit Life(ForgetfulFiles& files) : files_(files) {
    auto journal = OpenSqliteJournal(files.folder() + "/above/below");
    EXPECT_TRUE(journal.ok()) << journal.status();
    if (!journal.ok()) return;
    journal_ = *std::move(journal);
    const Recovered recovered = journal_->TakeRecovered();
    if (recovered.snapshot_sequence > 0) {
      EXPECT_EQ(recovered.snapshot, SnapshotOf(recovered.snapshot_sequence));
    }
    uint64_t sequence = recovered.snapshot_sequence;
    for (const Recovered::Record& record : recovered.records) {
      EXPECT_EQ(record.sequence, ++sequence);
      EXPECT_EQ(record.bytes, RecordOf(sequence));
    }
    recovered_ = sequence;
    appended_ = sequence;
    reported_.push_back({files.calls(), sequence});
    const absl::Status started = journal_->Start([this](absl::StatusOr<uint64_t> sequence) {
      std::lock_guard lock(mu_);
      if (sequence.ok()) reported_.push_back({files_.calls(), *sequence});
    });
    EXPECT_TRUE(started.ok()) << started;
  }

  uint64_t recovered() const { return recovered_; }
  uint64_t appended() const { return appended_; }
  bool opened() const { return journal_ != nullptr; }

  void Append(uint64_t records) {
    for (uint64_t i = 0; i < records; ++i) {
      ++appended_;
      journal_->Append(appended_, RecordOf(appended_));
    }
  }
  absl::Status status() const { return journal_->status(); }
  absl::Status WaitDurable() { return journal_->WaitDurable(appended_); }
  void WaitForMark() {
    std::string mark;
    AppendMark(appended_, mark);
    files_.WaitForWrite(mark);
  }
  // Takes a snapshot, the first one of this life as a whole.
  void Snapshot() {
    SnapshotChanges changes = WholeSnapshot(SnapshotOf(appended_));
    changes.whole = std::exchange(first_snapshot_, false);
    journal_->Snapshot(appended_, std::move(changes));
  }
  void WaitForSnapshot() {
    EXPECT_TRUE(Eventually([this] {
      const std::string folder = files_.folder() + "/above/below";
      return std::ranges::count_if(fs::directory_iterator(folder), [](const auto& entry) {
               return entry.path().extension() == ".log";
             }) == 1;
    }));
  }
  // Appends groups as a dispatcher does that is first busy and then idle.
  void Work() {
    Append(1);
    EXPECT_TRUE(WaitDurable().ok());
    Append(3);
    EXPECT_TRUE(WaitDurable().ok());
    WaitForMark();
    Snapshot();
    Append(2);
    EXPECT_TRUE(WaitDurable().ok());
  }
  void End() { journal_.reset(); }

  // Returns the last record that was reported as durable within those calls.
  uint64_t ReportedAt(size_t calls) const {
    std::lock_guard lock(mu_);
    uint64_t last = 0;
    for (const auto& [call, sequence] : reported_) {
      if (call <= calls) last = std::max(last, sequence);
    }
    return last;
  }

 private:
  ForgetfulFiles& files_;
  uint64_t recovered_ = 0;
  uint64_t appended_ = 0;
  bool first_snapshot_ = true;
  mutable std::mutex mu_;
  std::vector<std::pair<size_t, uint64_t>> reported_;
  std::unique_ptr<Journal> journal_;
};

class PowerLossTest : public ::testing::Test {
 protected:
  // Loses power after each call from `first` on, `times` times with different remains, and opens
  // the journal again. Some of these journals then work on and lose power too.
  void LosePowerAnywhere(const ForgetfulFiles& files, const Life& life, size_t first, int times) {
    for (size_t calls = first; calls <= files.calls(); ++calls) {
      for (int time = 0; time < times && !HasFailure(); ++time) {
        SCOPED_TRACE(absl::StrCat("behind call ", calls, ", time ", time));
        random_.seed(calls * 100 + static_cast<size_t>(time));
        LosePowerOnce(files, life, calls, time == 0 && calls % 8 == 0 ? 2 : 0);
      }
    }
  }

 private:
  void LosePowerOnce(const ForgetfulFiles& files, const Life& life, size_t calls, int again) {
    const std::string remains = NewFolder(absl::StrCat("remains_", again));
    files.LosePower(calls, random_, remains);
    ForgetfulFiles remaining(remains);
    const size_t first = remaining.calls();
    Life next(remaining);
    if (!next.opened()) return;
    EXPECT_GE(next.recovered(), life.ReportedAt(calls));
    EXPECT_LE(next.recovered(), life.appended());
    if (again == 0) return;
    next.Work();
    next.End();
    const size_t then = first + random_() % (remaining.calls() - first + 1);
    SCOPED_TRACE(absl::StrCat("then behind call ", then));
    LosePowerOnce(remaining, next, then, again - 1);
  }

  std::mt19937_64 random_;
};

TEST_F(PowerLossTest, LosesNothingReportedAsDurable) {
  const std::string folder = NewFolder("folder");
  fs::create_directory(folder);
  ForgetfulFiles files(folder);
  Life life(files);
  life.Work();
  life.Work();
  life.End();
  LosePowerAnywhere(files, life, 0, 2);
}

// Linux treats data that it failed to write as written, and the next process reads it.
TEST_F(PowerLossTest, LosesNothingThatAnEarlierProcessCouldNotSync) {
  const std::string folder = NewFolder("folder");
  fs::create_directory(folder);
  ForgetfulFiles files(folder);
  Life first(files);
  first.Work();
  first.WaitForSnapshot();
  first.WaitForMark();
  files.FailTheNextSync();
  first.Append(1);
  EXPECT_FALSE(first.WaitDurable().ok());
  first.End();
  Life second(files);
  const size_t opened = files.calls();
  EXPECT_EQ(second.recovered(), first.appended());
  second.Work();
  second.End();
  LosePowerAnywhere(files, second, opened, 2);
}

// The device may have done the second of two removals and not the first.
TEST_F(PowerLossTest, OldLogsMayGoInAnyOrder) {
  const std::string folder = NewFolder("folder");
  fs::create_directory(folder);
  ForgetfulFiles files(folder);
  Life first(files);
  files.RefuseRemovals(EIO);
  first.Append(2);
  EXPECT_TRUE(first.WaitDurable().ok());
  first.Snapshot();
  first.Append(1);
  EXPECT_TRUE(first.WaitDurable().ok());
  first.End();
  files.RefuseRemovals(0);
  Life second(files);
  second.Append(2);
  EXPECT_TRUE(second.WaitDurable().ok());
  second.Snapshot();
  second.End();
  LosePowerAnywhere(files, second, files.calls() - 5, 20);
}

// The next snapshot removes it.
TEST(FailingFilesTest, ALogThatCannotBeRemovedStaysAndTheJournalGoesOn) {
  const std::string folder = NewFolder("folder");
  fs::create_directory(folder);
  ForgetfulFiles files(folder);
  const std::string log = files.folder() + "/above/below/changes-00000000000000000001.log";
  {
    Life life(files);
    life.Append(2);
    EXPECT_TRUE(life.WaitDurable().ok());
    files.RefuseRemovals(EROFS);
    life.Snapshot();
    life.Append(1);
    EXPECT_TRUE(life.WaitDurable().ok());
    life.End();
    EXPECT_TRUE(fs::exists(log));
  }
  files.RefuseRemovals(0);
  Life life(files);
  EXPECT_EQ(life.recovered(), 3u);
  life.Snapshot();
  life.End();
  EXPECT_FALSE(fs::exists(log));
}

}  // namespace
}  // namespace penstock::control
