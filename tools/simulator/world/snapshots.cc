// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/world/snapshots.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "control/journal/log_format.h"
#include "include/status_macros.h"

namespace penstock::simulator {

DiskSnapshots::DiskSnapshots(Disk& disk, std::string folder)
    : disk_(disk), folder_(std::move(folder)), path_(folder_ + "/snapshot") {}

absl::StatusOr<control::SnapshotStore::Snapshot> DiskSnapshots::Read() {
  const absl::StatusOr<std::string> bytes = disk_.Read(path_);
  if (absl::IsNotFound(bytes.status())) return Snapshot();
  RETURN_IF_ERROR(bytes.status());
  ASSIGN_OR_RETURN(control::ParsedLog log, control::ParseLog(*bytes, 1, std::nullopt, path_));
  Snapshot snapshot;
  size_t pieces = 0;
  const std::string first = log.records.empty() ? "" : log.records[0].bytes;
  const std::vector<std::string> numbers = absl::StrSplit(first, ' ');
  if (!log.cut.empty() || numbers.size() != 2 ||
      !absl::SimpleAtoi(numbers[0], &snapshot.sequence) || !absl::SimpleAtoi(numbers[1], &pieces) ||
      log.records.size() != 2 * pieces + 1) {
    return absl::DataLossError(absl::StrCat("snapshot ", path_, " is incomplete or damaged"));
  }
  for (size_t i = 1; i <= pieces; ++i) {
    snapshot.pieces.push_back(std::move(log.records[2 * i].bytes));
  }
  return snapshot;
}

absl::Status DiskSnapshots::Write(uint64_t sequence, const control::SnapshotChanges& changes) {
  std::map<std::string, std::string> pieces;
  if (!changes.whole) pieces = pieces_;
  for (const auto& [key, piece] : changes.pieces) {
    if (piece.has_value()) {
      pieces[key] = *piece;
    } else {
      pieces.erase(key);
    }
  }
  std::string bytes = control::LogHeader();
  uint64_t records = 0;
  const auto append = [&](std::string_view record) {
    control::AppendRecord(++records, 1, record, bytes);
  };
  append(absl::StrCat(sequence, " ", pieces.size()));
  for (const auto& [key, piece] : pieces) {
    append(key);
    append(piece);
  }

  const std::string made = path_ + ".new";
  ASSIGN_OR_RETURN(std::unique_ptr<DiskFolder> folder, disk_.OpenFolder(folder_));
  ASSIGN_OR_RETURN(std::unique_ptr<DiskFile> file, disk_.Create(made, Disk::Readers::kOwner));
  absl::Status written = file->Append(bytes);
  if (written.ok()) written = file->Sync();
  if (written.ok()) written = file->Rename(path_);
  if (!written.ok()) {
    disk_.Remove(made).IgnoreError();  // the first error is the one to report
    return written;
  }
  written_ = std::move(file);
  pieces_ = std::move(pieces);
  return folder->Sync();
}

absl::Status DiskSnapshots::CheckThere() {
  return written_ == nullptr ? absl::OkStatus() : written_->CheckThere();
}

absl::StatusOr<std::unique_ptr<control::Journal>> OpenDiskJournal(const std::string& work_dir,
                                                                  Disk& disk) {
  RETURN_IF_ERROR(disk.MakeFolders(work_dir));
  return control::OpenLogJournal(work_dir, disk, std::make_unique<DiskSnapshots>(disk, work_dir),
                                 absl::StrCat("simulated:", work_dir));
}

}  // namespace penstock::simulator
