// SPDX-License-Identifier: Apache-2.0
#include "control/journal/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/journal/log_format.h"
#include "include/status_macros.h"

namespace penstock::control {

absl::Status ErrnoStatus(int error, const std::string& what, const std::string& path) {
  absl::StatusCode code = absl::ErrnoToStatusCode(error);
  if (error == EFBIG || error == EDQUOT || error == ENOSPC) {
    code = absl::StatusCode::kResourceExhausted;
  }
  return absl::Status(code, absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(error)));
}

absl::StatusOr<LogFile> LogFile::Write(const std::string& path, std::string_view content) {
  const std::string made = path + ".new";
  const int fd = open(made.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, "open", made);
  LogFile file(made, fd);
  absl::Status written = file.Append(content);
  if (written.ok() && rename(made.c_str(), path.c_str()) != 0) {
    written = ErrnoStatus(errno, "rename to", path);
  }
  if (!written.ok()) {
    unlink(made.c_str());
    return written;
  }
  file.path_ = path;
  return file;
}

absl::StatusOr<LogFile> LogFile::Make(const std::string& path) {
  return Write(path, LogHeader());
}

absl::StatusOr<LogFile> LogFile::Rewrite(const std::string& path, size_t valid_bytes) {
  if (valid_bytes == 0) return Make(path);
  ASSIGN_OR_RETURN(const std::string content, ReadWholeFile(path));
  return Write(path, std::string_view(content).substr(0, valid_bytes));
}

LogFile::LogFile(LogFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

LogFile& LogFile::operator=(LogFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

LogFile::~LogFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status LogFile::Append(std::string_view bytes) {
  RETURN_IF_ERROR(AppendUnsynced(bytes));
  if (fdatasync(fd_) != 0) return ErrnoStatus(errno, "sync", path_);
  struct stat here, there;
  if (fstat(fd_, &here) != 0) return ErrnoStatus(errno, "examine", path_);
  if (stat(path_.c_str(), &there) != 0) return ErrnoStatus(errno, "find", path_);
  if (here.st_ino == there.st_ino && here.st_dev == there.st_dev) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("another file has replaced ", path_));
}

absl::Status LogFile::AppendUnsynced(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "write", path_);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return std::string();
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  std::string content;
  struct stat about;
  absl::Status status;
  if (fstat(fd, &about) != 0) status = ErrnoStatus(errno, "examine", path);
  content.resize(status.ok() ? static_cast<size_t>(about.st_size) : 0);
  size_t done = 0;
  while (status.ok() && done < content.size()) {
    const ssize_t got = read(fd, content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = ErrnoStatus(errno, "read", path);
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  close(fd);
  RETURN_IF_ERROR(status);
  content.resize(done);
  return content;
}

absl::StatusOr<Directory> Directory::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  return Directory(path, fd);
}

Directory::Directory(Directory&& other) noexcept
    : path_(other.path_), fd_(std::exchange(other.fd_, -1)) {}

Directory::~Directory() {
  if (fd_ >= 0) close(fd_);
}

absl::Status Directory::Sync() {
  return fsync(fd_) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "sync", path_);
}

}  // namespace penstock::control
