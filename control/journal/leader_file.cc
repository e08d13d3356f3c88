// SPDX-License-Identifier: Apache-2.0
#include "control/journal/leader_file.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

absl::Status Replaced(const std::string& path, const std::string& why) {
  return absl::AbortedError(absl::StrCat("this dispatcher leads no longer: ", path, ": ", why,
                                         "; start it again, so that it becomes a standby"));
}

}  // namespace

absl::StatusOr<LeaderFile> LeaderFile::Take(Disk& disk, const std::string& work_dir,
                                            uint64_t term) {
  const std::string path = work_dir + "/leader";
  const absl::StatusOr<std::string> before = disk.Read(path);
  if (!before.ok() && !absl::IsNotFound(before.status())) return before.status();
  uint64_t newest = 0;
  if (before.ok() && !absl::SimpleAtoi(absl::StripAsciiWhitespace(*before), &newest)) {
    return absl::DataLossError(
        absl::StrCat(path, " does not contain the term of a leader; remove it"));
  }
  if (newest > term) return Replaced(path, absl::StrCat("term ", newest, " is later than ", term));
  ASSIGN_OR_RETURN(std::unique_ptr<DiskFile> file,
                   disk.Create(path + ".new", Disk::Readers::kOwner));
  RETURN_IF_ERROR(file->Append(absl::StrCat(term, "\n")));
  RETURN_IF_ERROR(file->Sync());
  RETURN_IF_ERROR(file->Rename(path));
  ASSIGN_OR_RETURN(const std::unique_ptr<DiskFolder> folder, disk.OpenFolder(work_dir));
  RETURN_IF_ERROR(folder->Sync());
  return LeaderFile(std::move(file));
}

absl::Status LeaderFile::Check() const {
  const absl::Status there = file_->CheckThere();
  return there.ok() ? there : Replaced(file_->path(), std::string(there.message()));
}

}  // namespace penstock::control
