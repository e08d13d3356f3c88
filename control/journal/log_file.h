// SPDX-License-Identifier: Apache-2.0
// One log file, to which bytes are only appended. Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/env/disk.h"

namespace penstock::control {

class LogFile {
 public:
  // Makes a new file with a header, readable by this user only. Replaces an existing file.
  static absl::StatusOr<LogFile> Make(Disk& disk, const std::string& path);
  // Replaces the file with a new file that contains its first `valid_bytes`. The old file must not
  // be continued: bytes that an earlier process failed to sync may be in the page cache but not on
  // the device, and would never be written to it. With 0 bytes, does the same as Make().
  static absl::StatusOr<LogFile> Rewrite(Disk& disk, const std::string& path, size_t valid_bytes);

  // Writes and syncs `bytes`, and checks that the file is still at its path. ResourceExhausted if
  // the disk is full. After an error, the end of the file may be torn.
  absl::Status Append(std::string_view bytes);
  // Writes `bytes`. They reach the device with the next Append(), or earlier.
  absl::Status AppendUnsynced(std::string_view bytes) { return file_->Append(bytes); }

 private:
  static absl::StatusOr<LogFile> Write(Disk& disk, const std::string& path,
                                       std::string_view content);
  explicit LogFile(std::unique_ptr<DiskFile> file) : file_(std::move(file)) {}

  std::unique_ptr<DiskFile> file_;
};

}  // namespace penstock::control
