// SPDX-License-Identifier: Apache-2.0
// A process's disk, the store of snapshots on it, and a journal that runs on both.
#include "tools/simulator/world/disk.h"

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "control/env/fake_disk.h"
#include "control/journal/journal.h"
#include "control/sync/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/journal/failing_disk.h"
#include "tools/simulator/engine/dice.h"
#include "tools/simulator/engine/scheduler.h"
#include "tools/simulator/engine/trace.h"
#include "tools/simulator/world/snapshots.h"

namespace penstock::simulator {
namespace {

using ::testing::ElementsAre;

Span AlwaysTakes(absl::Duration time) {
  return {time, time};
}

// --- A process's disk ----------------------------------------------------------------

class SimDiskTest : public ::testing::Test {
 protected:
  SimDiskTest() { EXPECT_TRUE(device_.MakeFolders("/d").ok()); }

  SimDisk DiskOf(std::shared_ptr<Process> process, const DiskTimes& times = {}) {
    return SimDisk(scheduler_, std::move(process), device_, times);
  }
  std::shared_ptr<Process> NewProcess() { return scheduler_.NewProcess("host", "worker"); }
  void RunFor(absl::Duration time) {
    const absl::Status run = scheduler_.Run(scheduler_.now() + time);
    EXPECT_TRUE(run.ok()) << run;
  }

  Trace trace_;
  Scheduler scheduler_{SchedulerOptions{}, trace_};
  FakeDisk device_;
};

TEST_F(SimDiskTest, EachOperationTakesItsTime) {
  const std::shared_ptr<Process> process = NewProcess();
  SimDisk disk = DiskOf(process, {.append = AlwaysTakes(absl::Milliseconds(1)),
                                  .sync = AlwaysTakes(absl::Milliseconds(20)),
                                  .other = AlwaysTakes(absl::Milliseconds(300))});
  bool done = false;
  scheduler_.StartIn(process, "writer", [&] {
    const absl::Time begin = BootTime();
    const auto file = disk.Create("/d/a", Disk::Readers::kOwner);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Append("one").ok());
    EXPECT_TRUE((*file)->Sync().ok());
    EXPECT_EQ(BootTime() - begin, absl::Milliseconds(321));
    EXPECT_EQ(*disk.Read("/d/a"), "one");
    EXPECT_EQ(BootTime() - begin, absl::Milliseconds(621));
    done = true;
  });
  RunFor(absl::Seconds(1));
  EXPECT_TRUE(done);
}

TEST_F(SimDiskTest, AKilledProcessChangesNothing) {
  const std::shared_ptr<Process> process = NewProcess();
  SimDisk disk = DiskOf(process);
  const auto file = *disk.Create("/d/a", Disk::Readers::kOwner);
  const auto folder = *disk.OpenFolder("/d");
  EXPECT_TRUE(file->Append("before").ok());
  process->Kill();
  disk.OnKilled();
  const int64_t operations = device_.operations();
  const auto aborted = [](const absl::Status& status) { return absl::IsAborted(status); };
  EXPECT_TRUE(aborted(file->Append("after")));
  EXPECT_TRUE(aborted(file->Sync()));
  EXPECT_TRUE(aborted(file->Rename("/d/b")));
  EXPECT_TRUE(aborted(file->CheckThere()));
  EXPECT_TRUE(aborted(folder->Sync()));
  EXPECT_TRUE(aborted(disk.Create("/d/c", Disk::Readers::kOwner).status()));
  EXPECT_TRUE(aborted(disk.CreateLocked("/d/c").status()));
  EXPECT_TRUE(aborted(disk.Read("/d/a").status()));
  EXPECT_TRUE(aborted(disk.Remove("/d/a")));
  EXPECT_TRUE(aborted(disk.RemoveUnlocked("/d/a")));
  EXPECT_TRUE(aborted(disk.List("/d").status()));
  EXPECT_TRUE(aborted(disk.MakeFolders("/e")));
  EXPECT_TRUE(aborted(disk.OpenFolder("/d").status()));
  EXPECT_EQ(device_.operations(), operations);
  SimDisk next = DiskOf(NewProcess());
  EXPECT_EQ(*next.Read("/d/a"), "before");
}

TEST_F(SimDiskTest, AnOperationThatWaitsWhenItsProcessIsKilledChangesNothing) {
  const std::shared_ptr<Process> process = NewProcess();
  SimDisk disk = DiskOf(process, {.append = AlwaysTakes(absl::Milliseconds(10))});
  absl::Status appended;
  scheduler_.StartIn(process, "writer", [&] {
    const auto file = *disk.Create("/d/a", Disk::Readers::kOwner);
    appended = file->Append("half");
  });
  RunFor(absl::Milliseconds(5));
  process->Kill();
  disk.OnKilled();
  RunFor(absl::Seconds(1));
  EXPECT_TRUE(absl::IsAborted(appended)) << appended;
  EXPECT_EQ(*device_.Read("/d/a"), "");
}

TEST_F(SimDiskTest, AKilledProcessLosesItsLocksAndOthersKeepTheirs) {
  const std::shared_ptr<Process> process = NewProcess();
  SimDisk disk = DiskOf(process);
  SimDisk other = DiskOf(NewProcess());
  const auto locked = *disk.CreateLocked("/d/a");
  const auto kept = *other.CreateLocked("/d/b");
  EXPECT_TRUE(absl::IsUnavailable(other.RemoveUnlocked("/d/a")));
  process->Kill();
  disk.OnKilled();
  EXPECT_TRUE(other.RemoveUnlocked("/d/a").ok());
  EXPECT_TRUE(absl::IsUnavailable(other.RemoveUnlocked("/d/b")));
}

// --- Snapshots -----------------------------------------------------------------------

TEST(DiskSnapshots, ReadsWhatWasWrittenLast) {
  FakeDisk disk;
  ASSERT_TRUE(disk.MakeFolders("/d").ok());
  DiskSnapshots snapshots(disk, "/d");
  EXPECT_EQ(snapshots.Read()->sequence, 0u);
  ASSERT_TRUE(snapshots.Write(3, control::WholeSnapshot({"all ", "three", ""})).ok());
  ASSERT_TRUE(snapshots.Write(5, control::WholeSnapshot({"all ", "five", ""})).ok());
  EXPECT_TRUE(snapshots.CheckThere().ok());
  DiskSnapshots again(disk, "/d");
  const auto read = again.Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->sequence, 5u);
  EXPECT_THAT(read->pieces, ElementsAre("all ", "five", ""));
  EXPECT_TRUE(disk.Remove("/d/snapshot").ok());
  EXPECT_FALSE(snapshots.CheckThere().ok());
}

TEST(DiskSnapshots, AnyDamageIsDataLoss) {
  FakeDisk disk;
  ASSERT_TRUE(disk.MakeFolders("/d").ok());
  DiskSnapshots snapshots(disk, "/d");
  ASSERT_TRUE(snapshots.Write(3, control::WholeSnapshot({"all ", "three"})).ok());
  const std::string whole = *disk.Read("/d/snapshot");
  const auto with = [&](const std::string& bytes) {
    EXPECT_TRUE((*disk.Create("/d/snapshot", Disk::Readers::kOwner))->Append(bytes).ok());
    return snapshots.Read().status();
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_TRUE(absl::IsDataLoss(with(whole.substr(0, i)))) << i << " bytes are left";
    std::string altered = whole;
    altered[i] = static_cast<char>(altered[i] ^ 4);
    EXPECT_TRUE(absl::IsDataLoss(with(altered))) << "byte " << i << " is altered";
  }
  EXPECT_TRUE(absl::IsDataLoss(with(whole + "x")));
  EXPECT_TRUE(with(whole).ok());
}

// The write fails at one of its operations, or from that operation on, and power is lost then.
TEST(DiskSnapshots, HasTheOldOrTheNewSnapshotAfterALossOfPower) {
  const std::vector<std::string> old(2, std::string(400, 'o'));
  const std::vector<std::string> latest(3, std::string(500, 'n'));
  std::mt19937_64 random(7);
  for (const bool for_good : {false, true}) {
    bool failed = true;
    for (int64_t operation = 0; failed; ++operation) {
      for (int time = 0; time < 30; ++time) {
        SCOPED_TRACE(absl::StrCat("operation ", operation, ", time ", time));
        FakeDisk disk;
        ASSERT_TRUE(disk.MakeFolders("/d").ok());
        ASSERT_TRUE(DiskSnapshots(disk, "/d").Write(1, control::WholeSnapshot(old)).ok());
        const int64_t at = disk.operations() + operation;
        disk.FailAt(at, absl::AbortedError("cut"), for_good);
        const bool written =
            DiskSnapshots(disk, "/d").Write(2, control::WholeSnapshot(latest)).ok();
        failed = disk.operations() > at;
        disk.LosePower(random);
        DiskSnapshots snapshots(disk, "/d");
        const auto read = snapshots.Read();
        ASSERT_TRUE(read.ok()) << read.status();
        EXPECT_TRUE(read->sequence == 2 || (read->sequence == 1 && !written)) << read->sequence;
        EXPECT_EQ(read->pieces, read->sequence == 2 ? latest : old);
        EXPECT_TRUE(snapshots.Write(3, control::WholeSnapshot(latest)).ok());
      }
    }
  }
}

// --- A journal -----------------------------------------------------------------------

control::OpenJournal NewDiskJournal() {
  return [](Disk& disk) { return OpenDiskJournal("/journal", disk); };
}

TEST(DiskJournal, LosesNothingDurableWhenItsProcessIsKilled) {
  control::FailAnywhere(NewDiskJournal, absl::AbortedError("killed"), /*for_good=*/true);
}

TEST(DiskJournal, LosesNothingDurableWhenOneOperationFails) {
  control::FailAnywhere(NewDiskJournal, absl::InternalError("an I/O error"), /*for_good=*/false);
}

TEST(DiskJournal, LosesNothingDurableWhenTheDiskIsFullForAMoment) {
  control::FailAnywhere(NewDiskJournal, absl::ResourceExhaustedError("full"), /*for_good=*/false);
}

// The lives of a simulated dispatcher that does nothing but write its journal.
class LivesOfADispatcher {
 public:
  explicit LivesOfADispatcher(uint64_t seed)
      : scheduler_(SchedulerOptions{.seed = seed}, trace_), dice_(seed), power_(seed) {}

  // Begins a life and kills it within 400 ms.
  void Live() {
    const std::shared_ptr<Process> process = scheduler_.NewProcess("host", "dispatcher");
    SimDisk disk(scheduler_, process, device_,
                 {.append = {absl::ZeroDuration(), absl::Milliseconds(3)},
                  .sync = {absl::Milliseconds(1), absl::Milliseconds(20)},
                  .other = {absl::ZeroDuration(), absl::Milliseconds(3)}});
    bool ended = false;
    scheduler_.StartIn(process, "dispatcher", [&] {
      Write(disk, *process);
      ended = true;
    });
    RunFor(dice_.Draw({absl::ZeroDuration(), absl::Milliseconds(400)}));
    process->Kill();
    disk.OnKilled();
    if (dice_.OneIn(2)) device_.LosePower(power_);
    RunFor(absl::Seconds(1));
    EXPECT_TRUE(ended);
  }

  uint64_t durable() const { return durable_; }
  uint64_t hash() const { return trace_.hash(); }

 private:
  static std::string TextOf(uint64_t sequence) { return absl::StrCat("record ", sequence); }

  void RunFor(absl::Duration time) {
    const absl::Status run = scheduler_.Run(scheduler_.now() + time);
    EXPECT_TRUE(run.ok()) << run;
  }

  // Writes until the process is killed.
  void Write(SimDisk& disk, const Process& process) {
    absl::StatusOr<std::unique_ptr<control::Journal>> journal = OpenDiskJournal("/journal", disk);
    EXPECT_TRUE(journal.ok() || !process.alive()) << journal.status();
    if (!journal.ok()) return;
    CheckRecovered((*journal)->TakeRecovered());
    const absl::Status started = (*journal)->Start([this](absl::StatusOr<uint64_t> sequence) {
      if (sequence.ok()) durable_ = *sequence;
    });
    EXPECT_TRUE(started.ok()) << started;
    while ((*journal)->WaitDurable(appended_).ok()) {
      for (int64_t left = dice_.Between(1, 3); left > 0; --left) {
        ++appended_;
        (*journal)->Append(appended_, TextOf(appended_));
      }
      if (dice_.OneIn(4))
        (*journal)->Snapshot(appended_,
                             control::WholeSnapshot({absl::StrCat("up to ", appended_)}));
    }
    EXPECT_FALSE(process.alive()) << (*journal)->status();
  }

  void CheckRecovered(const control::Recovered& recovered) {
    EXPECT_GE(recovered.last_sequence(), durable_);
    EXPECT_LE(recovered.last_sequence(), appended_);
    if (recovered.snapshot_sequence > 0) {
      EXPECT_THAT(recovered.snapshot,
                  ElementsAre(absl::StrCat("up to ", recovered.snapshot_sequence)));
    }
    for (const control::Recovered::Record& record : recovered.records) {
      EXPECT_EQ(record.bytes, TextOf(record.sequence));
    }
    durable_ = appended_ = recovered.last_sequence();
  }

  Trace trace_;
  Scheduler scheduler_;
  FakeDisk device_;
  Dice dice_;
  std::mt19937_64 power_;
  uint64_t appended_ = 0;
  uint64_t durable_ = 0;
};

TEST(DiskJournal, LosesNothingDurableOverManyLives) {
  uint64_t hashes[2];
  for (uint64_t& hash : hashes) {
    LivesOfADispatcher lives(/*seed=*/7);
    for (int life = 0; life < 200 && !::testing::Test::HasFailure(); ++life) {
      SCOPED_TRACE(absl::StrCat("life ", life));
      lives.Live();
    }
    EXPECT_GT(lives.durable(), 500u);
    hash = lives.hash();
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

}  // namespace
}  // namespace penstock::simulator
