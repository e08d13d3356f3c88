// SPDX-License-Identifier: Apache-2.0
// A journal that writes the changes to a log. A SnapshotWriter writes its snapshots, while the log
// goes on. docs/decisions/0001-journal.md gives the reason for two files.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "control/env/disk.h"
#include "control/journal/journal.h"
#include "control/journal/leader_file.h"
#include "control/journal/log_file.h"
#include "control/journal/log_format.h"
#include "control/journal/queued_journal.h"
#include "control/journal/snapshot_store.h"
#include "control/journal/snapshot_writer.h"
#include "include/status_macros.h"

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

// The snapshots of a leader. No other leader's snapshot is changed, and no log is removed once
// another leader has taken the directory.
class LedSnapshots final : public SnapshotStore {
 public:
  LedSnapshots(std::unique_ptr<SnapshotStore> store, std::shared_ptr<const LeaderFile> leader)
      : store_(std::move(store)), leader_(std::move(leader)) {}

  absl::StatusOr<Snapshot> Read() override { return store_->Read(); }
  absl::Status Write(uint64_t sequence, const SnapshotChanges& changes) override {
    RETURN_IF_ERROR(leader_->Check());
    return store_->Write(sequence, changes);
  }
  absl::Status CheckThere() override {
    RETURN_IF_ERROR(leader_->Check());
    return store_->CheckThere();
  }

 private:
  const std::unique_ptr<SnapshotStore> store_;
  const std::shared_ptr<const LeaderFile> leader_;
};

class LogStore final : public RecordStore {
 public:
  // `leader`: null if only this dispatcher may run. `written`: the last record in the log.
  LogStore(std::string work_dir, Disk& disk, std::unique_ptr<DiskFolder> folder,
           std::shared_ptr<const LeaderFile> leader, std::unique_ptr<SnapshotStore> snapshots,
           LogFile log, uint64_t log_begins, uint64_t written)
      : work_dir_(std::move(work_dir)),
        disk_(disk),
        folder_(std::move(folder)),
        leader_(std::move(leader)),
        log_(std::move(log)),
        log_begins_(log_begins),
        written_(written),
        snapshots_(std::move(snapshots)) {}

  absl::Status Start(const std::string& name, Lost lost) override {
    return snapshots_.Start(
        absl::StrCat("snapshots of ", name),
        [this](uint64_t sequence) { return RemoveLogs(sequence); }, std::move(lost));
  }

  absl::Status WriteRecords(const std::vector<Recovered::Record>& group) override {
    std::string bytes;
    for (const Recovered::Record& record : group) {
      AppendRecord(record.sequence, group.front().sequence, record.bytes, bytes);
    }
    const absl::Status appended = log_.Append(bytes);
    RETURN_IF_ERROR(CheckLeads());  // also says why the log was replaced
    RETURN_IF_ERROR(Annotate(appended, "at record ", group.front().sequence,
                             "; no unwritten change was acknowledged; free space and start again"));
    written_ = group.back().sequence;
    return absl::OkStatus();
  }

  // The next group would show that this one is durable. If there is none yet, a mark shows it.
  absl::Status OnIdle() override {
    std::string mark;
    AppendMark(written_, mark);
    return Annotate(log_.AppendUnsynced(mark), "after record ", written_,
                    "; free space and start again");
  }

  // Begins a new log, so that the logs before it can be removed once the snapshot is durable. If no
  // space or no file descriptor is left for a new log, the old one is continued, and stays until
  // the next snapshot.
  absl::Status WriteSnapshot(uint64_t sequence, SnapshotChanges changes) override {
    RETURN_IF_ERROR(CheckLeads());
    if (log_begins_ != written_ + 1) {
      if (absl::StatusOr<LogFile> log = LogFile::Make(disk_, LogPath(work_dir_, written_ + 1));
          log.ok()) {
        log_ = *std::move(log);
        log_begins_ = written_ + 1;
        RETURN_IF_ERROR(folder_->Sync());
      } else if (absl::IsResourceExhausted(log.status())) {
        ReportFailedSnapshot(log.status());
        // A new log would show that the records before it are durable. The mark shows this instead.
        RETURN_IF_ERROR(OnIdle());
      } else {
        return log.status();
      }
    }
    snapshots_.Write(sequence, std::move(changes));
    return absl::OkStatus();
  }

 private:
  // Called on the thread of snapshots_. Removes the logs that contain only records up to
  // `sequence`. If a power loss brings one of them back, it is ignored.
  absl::Status RemoveLogs(uint64_t sequence) {
    ASSIGN_OR_RETURN(const std::vector<uint64_t> firsts, ListLogs(disk_, work_dir_));
    for (size_t i = 0; i + 1 < firsts.size() && firsts[i + 1] <= sequence + 1; ++i)
      RETURN_IF_ERROR(disk_.Remove(LogPath(work_dir_, firsts[i])));
    return absl::OkStatus();
  }

  absl::Status CheckLeads() const { return leader_ ? leader_->Check() : absl::OkStatus(); }

  const std::string work_dir_;
  Disk& disk_;
  const std::unique_ptr<DiskFolder> folder_;
  const std::shared_ptr<const LeaderFile> leader_;
  LogFile log_;
  uint64_t log_begins_;  // the number of its first record
  uint64_t written_;     // the last record in the log
  SnapshotWriter snapshots_;
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
                                                        std::string name, uint64_t term) {
  std::shared_ptr<const LeaderFile> leader;
  if (term != 0) {
    ASSIGN_OR_RETURN(LeaderFile taken, LeaderFile::Take(disk, work_dir, term));
    leader = std::make_shared<const LeaderFile>(std::move(taken));
    snapshots = std::make_unique<LedSnapshots>(std::move(snapshots), leader);
  }
  ASSIGN_OR_RETURN(SnapshotStore::Snapshot snapshot, snapshots->Read());
  Recovered recovered;
  recovered.snapshot = std::move(snapshot.pieces);
  recovered.snapshot_sequence = snapshot.sequence;
  ASSIGN_OR_RETURN(LastLog last, ReadLogs(disk, work_dir, recovered));
  ASSIGN_OR_RETURN(LogFile log,
                   LogFile::Rewrite(disk, LogPath(work_dir, last.first), last.valid_bytes));
  ASSIGN_OR_RETURN(std::unique_ptr<DiskFolder> folder, disk.OpenFolder(work_dir));
  RETURN_IF_ERROR(folder->Sync());
  auto store = std::make_unique<LogStore>(work_dir, disk, std::move(folder), std::move(leader),
                                          std::move(snapshots), std::move(log), last.first,
                                          recovered.last_sequence());
  return MakeQueuedJournal(std::move(name), std::move(recovered), std::move(store));
}

}  // namespace penstock::control
