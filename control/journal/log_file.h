// SPDX-License-Identifier: Apache-2.0
// One log file, which is only appended to. Not thread safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::control {

class LogFile {
 public:
  // Makes a new file with a header, readable by this user only. Replaces an existing file.
  static absl::StatusOr<LogFile> Make(const std::string& path);
  // Replaces the file with a copy of its first `valid_bytes`. Bytes that an earlier process could
  // not sync may be in the page cache and not on the device, and would never be written. 0 bytes:
  // the same as Make().
  static absl::StatusOr<LogFile> Rewrite(const std::string& path, size_t valid_bytes);
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&& other) noexcept;
  ~LogFile();

  const std::string& path() const { return path_; }
  // Writes and syncs `bytes`, and checks that the file is still at its path. ResourceExhausted on a
  // full disk; the end of the file may then be torn.
  absl::Status Append(std::string_view bytes);
  // Writes `bytes`. They reach the device with the next Append(), or earlier.
  absl::Status AppendUnsynced(std::string_view bytes);

 private:
  static absl::StatusOr<LogFile> Write(const std::string& path, std::string_view content);
  LogFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_;
};

// Returns the whole content; empty if there is no such file.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);
// A directory, held open. Not thread safe.
class Directory {
 public:
  static absl::StatusOr<Directory> Open(const std::string& path);
  Directory(Directory&& other) noexcept;
  Directory& operator=(Directory&&) = delete;
  ~Directory();

  // Makes files durable that were created, renamed or removed in it. Opens nothing.
  absl::Status Sync();

 private:
  Directory(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  int fd_;
};
// Returns "cannot <what> <path>: <reason>" with the code for the errno value `error`.
absl::Status ErrnoStatus(int error, const std::string& what, const std::string& path);

}  // namespace penstock::control
