// SPDX-License-Identifier: Apache-2.0
// One log file that is appended to. Not thread safe.
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
  // A new one, with a header; only this user may read it. One that is there is replaced.
  static absl::StatusOr<LogFile> Make(const std::string& path);
  // Its first `valid_bytes`, written anew: what an earlier process could not sync may be in the
  // page cache and not on the device, and would never be written. None: as Make().
  static absl::StatusOr<LogFile> Rewrite(const std::string& path, size_t valid_bytes);
  LogFile(LogFile&& other) noexcept;
  LogFile& operator=(LogFile&& other) noexcept;
  ~LogFile();

  const std::string& path() const { return path_; }
  // Written and on the device when it returns, and still at its path. ResourceExhausted on a full
  // disk; the file's end may then be torn.
  absl::Status Append(std::string_view bytes);
  // Written; on the device sooner or later, at the latest with the next Append().
  absl::Status AppendUnsynced(std::string_view bytes);

 private:
  static absl::StatusOr<LogFile> Write(const std::string& path, std::string_view content);
  LogFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_;
};

// The whole content; empty if there is no such file.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path);
// A folder, held open. Not thread safe.
class Directory {
 public:
  static absl::StatusOr<Directory> Open(const std::string& path);
  Directory(Directory&& other) noexcept;
  Directory& operator=(Directory&&) = delete;
  ~Directory();

  // Makes what was created, renamed or removed in it durable. Opens nothing.
  absl::Status Sync();

 private:
  Directory(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  int fd_;
};
// "cannot <what> <path>: <reason>" with the code that errno stands for.
absl::Status ErrnoStatus(int error, const std::string& what, const std::string& path);

}  // namespace penstock::control
