// SPDX-License-Identifier: Apache-2.0
// A journal that writes the changes to a log, and gives its snapshots to a SnapshotStore beside it.
// docs/decisions/0001-journal.md gives the reason for two files.
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
#include "control/observe/event_log.h"
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
             std::unique_ptr<SnapshotStore> snapshots, LogFile log, Recovered recovered)
      : name_(std::move(name)),
        work_dir_(std::move(work_dir)),
        disk_(disk),
        folder_(std::move(folder)),
        recovered_(std::move(recovered)),
        snapshots_(std::move(snapshots)),
        log_(std::move(log)),
        appended_(recovered_.last_sequence()),
        durable_sequence_(appended_) {}

  ~LogJournal() override {
    {
      MutexLock lock(mu_);
      stopping_ = true;
      changed_.NotifyAll();
    }
    if (writer_.joinable()) writer_.join();
  }

  Recovered TakeRecovered() override { return std::move(recovered_); }

  absl::Status Start(Durable durable) override {
    durable_ = std::move(durable);
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

  void Snapshot(uint64_t sequence, std::vector<std::string> pieces) override {
    MutexLock lock(mu_);
    PENSTOCK_CHECK(sequence == appended_);
    queue_.push_back({.sequence = sequence, .snapshot = std::move(pieces)});
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
    std::optional<std::vector<std::string>> snapshot = {};  // instead of a record
  };

  // Runs on the writer's thread.
  void Write() {
    while (true) {
      std::vector<Item> group = TakeGroup();
      if (group.empty()) return;
      const bool is_snapshot = group.front().snapshot.has_value();
      const uint64_t last = group.back().sequence;
      absl::Status written = is_snapshot ? WriteSnapshot(group.front()) : WriteRecords(group);
      if (!written.ok()) return Fail(written);
      bool idle = false;
      {
        MutexLock lock(mu_);
        durable_sequence_ = last;
        idle = queue_.empty();
        changed_.NotifyAll();
      }
      if (is_snapshot) continue;
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
  // item. Empty if the writer must stop.
  std::vector<Item> TakeGroup() {
    MutexLock lock(mu_);
    changed_.Wait(lock, [this]() REQUIRES(mu_) { return stopping_ || !queue_.empty(); });
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

  // Begins a new log, and removes the old logs when the snapshot that replaces them is durable. If
  // a power loss brings an old log back, the log is ignored. If no space or no file descriptor is
  // left, the snapshot is skipped, and the logs stay until a snapshot succeeds.
  absl::Status WriteSnapshot(const Item& item) {
    const uint64_t next = item.sequence + 1;
    absl::StatusOr<std::vector<uint64_t>> old = ListLogs(disk_, work_dir_);
    if (!old.ok()) return WithoutLog(item.sequence, old.status());
    if (!old->empty() && old->back() == next) {
      old->pop_back();  // no record since the last snapshot
    } else {
      absl::StatusOr<LogFile> log = LogFile::Make(disk_, LogPath(work_dir_, next));
      if (!log.ok()) return WithoutLog(item.sequence, log.status());
      log_ = *std::move(log);
      RETURN_IF_ERROR(folder_->Sync());
    }
    if (absl::Status written = snapshots_->Write(item.sequence, *item.snapshot); !written.ok())
      return WithoutSnapshot(Annotate(written, "while writing a snapshot"));
    RETURN_IF_ERROR(Annotate(snapshots_->CheckThere(), "the logs are kept; start again"));
    for (uint64_t first : *old) RETURN_IF_ERROR(disk_.Remove(LogPath(work_dir_, first)));
    return absl::OkStatus();
  }

  // Called if no new log can be made. A new log would show that the records before it are durable;
  // a mark shows this instead.
  absl::Status WithoutLog(uint64_t sequence, const absl::Status& why) {
    RETURN_IF_ERROR(WithoutSnapshot(why));
    return Mark(sequence);
  }

  static absl::Status WithoutSnapshot(const absl::Status& why) {
    if (!absl::IsResourceExhausted(why)) return why;
    StderrEventLog()->Write({"snapshot_failed", {{"reason", std::string(why.message())}}});
    return absl::OkStatus();
  }

  const std::string name_;
  const std::string work_dir_;
  Disk& disk_;
  const std::unique_ptr<DiskFolder> folder_;  // used only by the writer thread
  Recovered recovered_;
  Durable durable_;                                 // constant after Start
  const std::unique_ptr<SnapshotStore> snapshots_;  // used only by the writer thread
  LogFile log_;                                     // used only by the writer thread
  Thread writer_;

  mutable Mutex mu_;
  Condition changed_;
  std::deque<Item> queue_ GUARDED_BY(mu_);
  uint64_t appended_ GUARDED_BY(mu_);
  uint64_t durable_sequence_ GUARDED_BY(mu_);
  absl::Status status_ GUARDED_BY(mu_);
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
                                      std::move(snapshots), std::move(log), std::move(recovered));
}

}  // namespace penstock::control
