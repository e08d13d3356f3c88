// SPDX-License-Identifier: Apache-2.0
// A journal that writes the changes to a log. A SnapshotWriter writes its snapshots, while the log
// goes on. docs/decisions/0001-journal.md gives the reason for two files.
#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "control/env/disk.h"
#include "control/journal/journal.h"
#include "control/journal/log_file.h"
#include "control/journal/log_format.h"
#include "control/journal/snapshot_store.h"
#include "control/journal/snapshot_writer.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock::control {
namespace {

constexpr std::string_view kLogPrefix = "changes-";
constexpr std::string_view kLogSuffix = ".log";

std::string LogPath(const std::string& work_dir, uint64_t first) {
  return absl::StrFormat("%s/changes-%020d.log", work_dir, first);
}

// Returns the first sequence of each log file in `work_dir`, ascending.
absl::StatusOr<std::vector<uint64_t>> ListLogs(Disk& disk, const std::string& work_dir) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, disk.List(work_dir));
  std::vector<uint64_t> firsts;
  for (const std::string& name : names) {
    uint64_t first = 0;
    if (name.starts_with(kLogPrefix) && name.ends_with(kLogSuffix) &&
        absl::SimpleAtoi(
            name.substr(kLogPrefix.size(), name.size() - kLogPrefix.size() - kLogSuffix.size()),
            &first)) {
      firsts.push_back(first);
    }
  }
  std::sort(firsts.begin(), firsts.end());
  return firsts;
}

class LogJournal final : public Journal {
 public:
  LogJournal(std::string name, std::string work_dir, Disk& disk, std::unique_ptr<DiskFolder> folder,
             std::unique_ptr<SnapshotStore> snapshots, LogFile log, uint64_t log_begins,
             Recovered recovered)
      : name_(std::move(name)),
        work_dir_(std::move(work_dir)),
        disk_(disk),
        folder_(std::move(folder)),
        recovered_(std::move(recovered)),
        snapshots_(std::make_unique<SnapshotWriter>(std::move(snapshots))),
        log_(std::move(log)),
        log_begins_(log_begins),
        appended_(recovered_.last_sequence()),
        durable_sequence_(appended_) {}

  ~LogJournal() override {
    {
      MutexLock lock(mu_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    if (writer_.joinable()) writer_.join();
    snapshots_.reset();  // its thread calls this object
  }

  Recovered TakeRecovered() override { return std::move(recovered_); }

  absl::Status Start(Durable durable) override {
    durable_ = std::move(durable);
    RETURN_IF_ERROR(snapshots_->Start(
        absl::StrCat("snapshots of ", name()),
        [this](uint64_t sequence) { return RemoveLogs(sequence); },
        [this](const absl::Status& why) { OnSnapshotLost(why); }));
    ASSIGN_OR_RETURN(writer_, StartThread(name(), [this] { Write(); }));
    return absl::OkStatus();
  }

  void Append(uint64_t sequence, std::string record) override {
    MutexLock lock(mu_);
    PENSTOCK_CHECK(sequence == appended_ + 1);
    appended_ = sequence;
    queue_.push_back({.sequence = sequence, .record = std::move(record)});
    changed_.NotifyAll();
  }

  void Snapshot(uint64_t sequence, SnapshotChanges changes) override {
    MutexLock lock(mu_);
    PENSTOCK_CHECK(sequence <= appended_);
    queue_.push_back({.sequence = sequence, .snapshot = std::move(changes)});
    changed_.NotifyAll();
  }

  absl::Status WaitDurable(uint64_t sequence) override {
    MutexLock lock(mu_);
    changed_.Wait(lock,
                  [&]() REQUIRES(mu_) { return durable_sequence_ >= sequence || !status_.ok(); });
    return durable_sequence_ >= sequence ? absl::OkStatus() : status_;
  }

  absl::Status status() const override {
    MutexLock lock(mu_);
    return status_;
  }

  std::string name() const override { return name_; }

 private:
  struct Item {
    uint64_t sequence;
    std::string record = {};
    std::optional<SnapshotChanges> snapshot = {};  // instead of a record
  };

  // Runs on the writer's thread.
  void Write() {
    while (true) {
      absl::StatusOr<std::vector<Item>> group = TakeGroup();
      if (!group.ok()) return Fail(group.status());
      if (group->empty()) return;
      const bool is_snapshot = group->front().snapshot.has_value();
      if (absl::Status done = is_snapshot ? BeginSnapshot(group->front()) : WriteRecords(*group);
          !done.ok())
        return Fail(done);
      if (is_snapshot) continue;
      const uint64_t last = group->back().sequence;
      bool idle = false;
      {
        MutexLock lock(mu_);
        durable_sequence_ = last;
        idle = queue_.empty();
        changed_.NotifyAll();
      }
      durable_(last);
      if (!idle) continue;  // the next group will show that this group is durable
      if (absl::Status marked = Mark(last); !marked.ok()) return Fail(marked);
    }
  }

  void Fail(const absl::Status& status) {
    {
      MutexLock lock(mu_);
      status_ = status;
      changed_.NotifyAll();
    }
    durable_(status);
  }

  // Returns all waiting items before the next snapshot or, if the first item is a snapshot, that
  // item. Empty if the writer must stop. The error of OnSnapshotLost(), if it was called.
  absl::StatusOr<std::vector<Item>> TakeGroup() {
    MutexLock lock(mu_);
    changed_.Wait(lock, [this]() REQUIRES(mu_) {
      return stopping_ || !queue_.empty() || !snapshot_lost_.ok();
    });
    RETURN_IF_ERROR(snapshot_lost_);
    auto end = std::find_if(queue_.begin(), queue_.end(),
                            [](const Item& item) { return item.snapshot.has_value(); });
    if (end == queue_.begin() && end != queue_.end()) ++end;
    std::vector<Item> group(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
    queue_.erase(queue_.begin(), end);
    return group;
  }

  absl::Status WriteRecords(const std::vector<Item>& group) {
    std::string bytes;
    for (const Item& item : group) {
      AppendRecord(item.sequence, group.front().sequence, item.record, bytes);
    }
    return Annotate(log_.Append(bytes), "at record ", group.front().sequence,
                    "; no unwritten change was acknowledged; free space and start again");
  }

  absl::Status Mark(uint64_t sequence) {
    std::string mark;
    AppendMark(sequence, mark);
    return Annotate(log_.AppendUnsynced(mark), "after record ", sequence,
                    "; free space and start again");
  }

  // Begins a new log, so that the logs before it can be removed once the snapshot is durable. If no
  // space or no file descriptor is left for a new log, the old one is continued, and stays until
  // the next snapshot.
  absl::Status BeginSnapshot(Item& item) {
    const uint64_t written = durable();
    if (log_begins_ != written + 1) {
      if (absl::StatusOr<LogFile> log = LogFile::Make(disk_, LogPath(work_dir_, written + 1));
          log.ok()) {
        log_ = *std::move(log);
        log_begins_ = written + 1;
        RETURN_IF_ERROR(folder_->Sync());
      } else if (absl::IsResourceExhausted(log.status())) {
        ReportFailedSnapshot(log.status());
        // A new log would show that the records before it are durable. The mark shows this instead.
        RETURN_IF_ERROR(Mark(written));
      } else {
        return log.status();
      }
    }
    snapshots_->Write(item.sequence, *std::move(item.snapshot));
    return absl::OkStatus();
  }

  // Called on the thread of snapshots_. Removes the logs that contain only records up to
  // `sequence`. If a power loss brings one of them back, it is ignored.
  absl::Status RemoveLogs(uint64_t sequence) {
    ASSIGN_OR_RETURN(const std::vector<uint64_t> firsts, ListLogs(disk_, work_dir_));
    for (size_t i = 0; i + 1 < firsts.size() && firsts[i + 1] <= sequence + 1; ++i)
      RETURN_IF_ERROR(disk_.Remove(LogPath(work_dir_, firsts[i])));
    return absl::OkStatus();
  }

  // Called on the thread of snapshots_. The writer's thread then fails.
  void OnSnapshotLost(const absl::Status& why) {
    MutexLock lock(mu_);
    snapshot_lost_ = why;
    changed_.NotifyAll();
  }

  uint64_t durable() const {
    MutexLock lock(mu_);
    return durable_sequence_;
  }

  const std::string name_;
  const std::string work_dir_;
  Disk& disk_;
  const std::unique_ptr<DiskFolder> folder_;  // used only by the writer thread
  Recovered recovered_;
  Durable durable_;                            // constant after Start
  std::unique_ptr<SnapshotWriter> snapshots_;  // constant until the end
  LogFile log_;                                // used only by the writer thread
  uint64_t log_begins_;                        // the number of its first record; as log_
  Thread writer_;

  mutable Mutex mu_;
  Condition changed_;
  std::deque<Item> queue_ GUARDED_BY(mu_);
  uint64_t appended_ GUARDED_BY(mu_);
  uint64_t durable_sequence_ GUARDED_BY(mu_);
  absl::Status status_ GUARDED_BY(mu_);
  absl::Status snapshot_lost_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
};

struct LastLog {
  uint64_t first;
  size_t valid_bytes;
};

// Reads the records after the snapshot from the logs. Returns the first sequence of the newest log
// and the size of its valid part.
absl::StatusOr<LastLog> ReadLogs(Disk& disk, const std::string& work_dir, Recovered& recovered) {
  ASSIGN_OR_RETURN(std::vector<uint64_t> firsts, ListLogs(disk, work_dir));
  // The first log needed is the last one that begins at or before the record after the snapshot. If
  // power was lost while earlier logs were being removed, any of them may still exist.
  const auto behind =
      std::upper_bound(firsts.begin(), firsts.end(), recovered.snapshot_sequence + 1);
  if (behind != firsts.begin()) firsts.erase(firsts.begin(), behind - 1);
  LastLog last{.first = recovered.snapshot_sequence + 1, .valid_bytes = 0};
  uint64_t expected = 0;
  for (size_t i = 0; i < firsts.size(); ++i) {
    const std::string path = LogPath(work_dir, firsts[i]);
    const uint64_t wanted = i == 0 ? recovered.snapshot_sequence + 1 : expected;
    if (firsts[i] > wanted || (i > 0 && firsts[i] != expected)) {
      return absl::DataLossError(absl::StrCat("journal ", path, ": records ", wanted, " to ",
                                              firsts[i] - 1, " before it are missing"));
    }
    const bool is_last = i + 1 == firsts.size();
    const std::optional<uint64_t> next = is_last ? std::nullopt : std::optional(firsts[i + 1]);
    ASSIGN_OR_RETURN(std::string bytes, disk.Read(path));
    ASSIGN_OR_RETURN(ParsedLog log, ParseLog(bytes, firsts[i], next, path));
    expected = firsts[i] + log.records.size();
    for (Recovered::Record& record : log.records) {
      if (record.sequence > recovered.snapshot_sequence) {
        recovered.records.push_back(std::move(record));
      }
    }
    recovered.cut = std::move(log.cut);
    last = {.first = firsts[i], .valid_bytes = log.valid_bytes};
  }
  if (!firsts.empty() && expected <= recovered.snapshot_sequence) {
    return absl::DataLossError(absl::StrCat("journal ", work_dir, ": its log ends at record ",
                                            expected - 1, ", before its snapshot of record ",
                                            recovered.snapshot_sequence));
  }
  return last;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> OpenLogJournal(const std::string& work_dir, Disk& disk,
                                                        std::unique_ptr<SnapshotStore> snapshots,
                                                        std::string name) {
  ASSIGN_OR_RETURN(SnapshotStore::Snapshot snapshot, snapshots->Read());
  Recovered recovered;
  recovered.snapshot = std::move(snapshot.pieces);
  recovered.snapshot_sequence = snapshot.sequence;
  ASSIGN_OR_RETURN(LastLog last, ReadLogs(disk, work_dir, recovered));
  ASSIGN_OR_RETURN(LogFile log,
                   LogFile::Rewrite(disk, LogPath(work_dir, last.first), last.valid_bytes));
  ASSIGN_OR_RETURN(std::unique_ptr<DiskFolder> folder, disk.OpenFolder(work_dir));
  RETURN_IF_ERROR(folder->Sync());
  return std::make_unique<LogJournal>(std::move(name), work_dir, disk, std::move(folder),
                                      std::move(snapshots), std::move(log), last.first,
                                      std::move(recovered));
}

}  // namespace penstock::control
