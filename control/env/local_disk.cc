// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/env/disk.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

class LocalDiskFile final : public DiskFile {
 public:
  LocalDiskFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~LocalDiskFile() override { close(fd_); }

  const std::string& path() const override { return path_; }

  absl::Status Append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return DiskError(errno, "write", path_);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    return fdatasync(fd_) == 0 ? absl::OkStatus() : DiskError(errno, "sync", path_);
  }

  absl::Status Rename(const std::string& path) override {
    if (rename(path_.c_str(), path.c_str()) != 0) return DiskError(errno, "rename to", path);
    path_ = path;
    return absl::OkStatus();
  }

  absl::Status CheckThere() override {
    struct stat here, there;
    if (fstat(fd_, &here) != 0) return DiskError(errno, "examine", path_);
    if (stat(path_.c_str(), &there) != 0) return DiskError(errno, "find", path_);
    if (here.st_ino == there.st_ino && here.st_dev == there.st_dev) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("another file has replaced ", path_));
  }

 private:
  std::string path_;
  const int fd_;
};

class LocalDiskFolder final : public DiskFolder {
 public:
  LocalDiskFolder(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~LocalDiskFolder() override { close(fd_); }

  absl::Status Sync() override {
    return fsync(fd_) == 0 ? absl::OkStatus() : DiskError(errno, "sync", path_);
  }

 private:
  const std::string path_;
  const int fd_;
};

class LocalDiskImpl final : public Disk {
 public:
  absl::StatusOr<std::unique_ptr<DiskFile>> Create(const std::string& path,
                                                   Readers readers) override {
    const mode_t mode = readers == Readers::kOwner ? 0600 : 0666;
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, mode);
    if (fd < 0) return DiskError(errno, "create", path);
    return std::make_unique<LocalDiskFile>(path, fd);
  }

  absl::StatusOr<std::unique_ptr<DiskFile>> CreateLocked(const std::string& path) override {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return DiskError(errno, "create", path);
    flock(fd, LOCK_EX | LOCK_NB);  // an error means that the file system has no locks
    return std::make_unique<LocalDiskFile>(path, fd);
  }

  absl::StatusOr<std::string> Read(const std::string& path) override {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return DiskError(errno, "open", path);
    std::string content;
    char buffer[64 << 10];
    ssize_t got = 0;
    while ((got = read(fd, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR)) {
      if (got > 0) content.append(buffer, static_cast<size_t>(got));
    }
    const int error = errno;
    close(fd);
    if (got < 0) return DiskError(error, "read", path);
    return content;
  }

  absl::Status Remove(const std::string& path) override {
    if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
    return DiskError(errno, "remove", path);
  }

  absl::Status RemoveUnlocked(const std::string& path) override {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return DiskError(errno, "open", path);
    absl::Status removed = absl::UnavailableError(absl::StrCat(path, " is locked"));
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) removed = Remove(path);
    close(fd);
    return removed;
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator at(folder, error);
    for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
      names.push_back(at->path().filename().string());
    }
    if (error) return DiskError(error.value(), "list", folder);
    return names;
  }

  absl::Status MakeFolders(const std::string& folder) override {
    const std::filesystem::path path(folder);
    std::error_code error;
    if (path.empty() || std::filesystem::is_directory(path, error)) return absl::OkStatus();
    const std::string above = path.parent_path().string();
    RETURN_IF_ERROR(MakeFolders(above));
    if (!path.has_filename()) return absl::OkStatus();  // "name/"
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      return DiskError(errno, "make", folder);
    }
    ASSIGN_OR_RETURN(const std::unique_ptr<DiskFolder> opened, OpenFolder(FolderOf(folder)));
    return opened->Sync();
  }

  absl::StatusOr<std::unique_ptr<DiskFolder>> OpenFolder(const std::string& folder) override {
    const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return DiskError(errno, "open", folder);
    return std::make_unique<LocalDiskFolder>(folder, fd);
  }
};

}  // namespace

Disk& LocalDisk() {
  static LocalDiskImpl* const disk = new LocalDiskImpl;
  return *disk;
}

std::string FolderOf(const std::string& path) {
  const std::filesystem::path above = std::filesystem::path(path).parent_path();
  return above.empty() ? "." : above.string();
}

absl::Status DiskError(int error, std::string_view what, const std::string& path) {
  const bool full = error == EFBIG || error == EDQUOT || error == ENOSPC;
  return absl::Status(full ? absl::StatusCode::kResourceExhausted : absl::ErrnoToStatusCode(error),
                      absl::StrCat("cannot ", std::string(what), " ", path, ": ",
                                   std::generic_category().message(error)));
}

}  // namespace penstock
