// SPDX-License-Identifier: Apache-2.0
#include "control/journal/log_file.h"

#include "control/journal/log_format.h"
#include "include/status_macros.h"

namespace penstock::control {

absl::StatusOr<LogFile> LogFile::Write(Disk& disk, const std::string& path,
                                       std::string_view content) {
  const std::string made = path + ".new";
  ASSIGN_OR_RETURN(std::unique_ptr<DiskFile> created, disk.Create(made, Disk::Readers::kOwner));
  LogFile file(std::move(created));
  absl::Status written = file.Append(content);
  if (written.ok()) written = file.file_->Rename(path);
  if (written.ok()) return file;
  disk.Remove(made).IgnoreError();  // the first error is the one to report
  return written;
}

absl::StatusOr<LogFile> LogFile::Make(Disk& disk, const std::string& path) {
  return Write(disk, path, LogHeader());
}

absl::StatusOr<LogFile> LogFile::Rewrite(Disk& disk, const std::string& path, size_t valid_bytes) {
  if (valid_bytes == 0) return Make(disk, path);
  ASSIGN_OR_RETURN(const std::string content, disk.Read(path));
  return Write(disk, path, std::string_view(content).substr(0, valid_bytes));
}

absl::Status LogFile::Append(std::string_view bytes) {
  RETURN_IF_ERROR(file_->Append(bytes));
  RETURN_IF_ERROR(file_->Sync());
  return file_->CheckThere();
}

}  // namespace penstock::control
