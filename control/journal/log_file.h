// SPDX-License-Identifier: Apache-2.0
// One log file, which is only appended to. Not thread safe.
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
  // Replaces the file with a copy of its first `valid_bytes`. Bytes that an earlier process could
  // not sync may be in the page cache and not on the device, and would never be written. 0 bytes:
  // the same as Make().
  static absl::StatusOr<LogFile> Rewrite(Disk& disk, const std::string& path, size_t valid_bytes);

  // Writes and syncs `bytes`, and checks that the file is still at its path. ResourceExhausted on a
  // full disk; the end of the file may then be torn.
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
