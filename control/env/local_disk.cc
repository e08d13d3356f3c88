// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/env/allowed_files.h"
#include "control/env/descriptor.h"
#include "control/env/disk.h"
#include "control/env/path_lookup.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

using Entry = PathLookup::Entry;

class LocalDiskFile final : public DiskFile {
 public:
  LocalDiskFile(std::string path, Entry at, int fd)
      : path_(std::move(path)), at_(std::move(at)), fd_(fd) {}

  const std::string& path() const override { return path_; }

  absl::Status Append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return DiskError(errno, "write", path_);
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    return fdatasync(fd_.get()) == 0 ? absl::OkStatus() : DiskError(errno, "sync", path_);
  }

  absl::Status Rename(const std::string& path) override {
    RETURN_IF_ERROR(CheckPath(path));
    const int folder = at_.folder.get();
    std::string name = folder == AT_FDCWD ? path : std::filesystem::path(path).filename().string();
    if (renameat(folder, at_.name.c_str(), folder, name.c_str()) != 0)
      return DiskError(errno, "rename to", path);
    at_.name = std::move(name);
    path_ = path;
    return absl::OkStatus();
  }

  absl::Status CheckThere() override {
    struct stat here, there;
    if (fstat(fd_.get(), &here) != 0) return DiskError(errno, "examine", path_);
    if (fstatat(at_.folder.get(), at_.name.c_str(), &there, 0) != 0)
      return DiskError(errno, "find", path_);
    if (here.st_ino == there.st_ino && here.st_dev == there.st_dev) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("another file has replaced ", path_));
  }

 private:
  std::string path_;
  Entry at_;
  const Descriptor fd_;
};

class LocalDiskFolder final : public DiskFolder {
 public:
  LocalDiskFolder(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  absl::Status Sync() override {
    return fsync(fd_.get()) == 0 ? absl::OkStatus() : DiskError(errno, "sync", path_);
  }

 private:
  const std::string path_;
  const Descriptor fd_;
};

class LocalDiskImpl final : public Disk {
 public:
  explicit LocalDiskImpl(PathLookup lookup) : lookup_(std::move(lookup)) {}

  absl::StatusOr<std::unique_ptr<DiskFile>> Create(const std::string& path,
                                                   Readers readers) override {
    return Make(path, O_TRUNC, readers);
  }

  absl::StatusOr<std::unique_ptr<DiskFile>> CreateLocked(const std::string& path) override {
    return Make(path, O_EXCL, Readers::kOwner);
  }

  absl::StatusOr<std::string> Read(const std::string& path) override {
    ASSIGN_OR_RETURN(const Descriptor file, Open(path, O_RDONLY));
    std::string content;
    char buffer[64 << 10];
    ssize_t got = 0;
    while ((got = read(file.get(), buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR)) {
      if (got > 0) content.append(buffer, static_cast<size_t>(got));
    }
    if (got < 0) return DiskError(errno, "read", path);
    return content;
  }

  absl::Status Remove(const std::string& path) override {
    ASSIGN_OR_RETURN(const Entry at, lookup_.Find(path));
    if (unlinkat(at.folder.get(), at.name.c_str(), 0) == 0 || errno == ENOENT)
      return absl::OkStatus();
    return DiskError(errno, "remove", path);
  }

  absl::Status RemoveUnlocked(const std::string& path) override {
    ASSIGN_OR_RETURN(const Descriptor file, Open(path, O_RDONLY));
    if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) return Remove(path);
    return absl::UnavailableError(absl::StrCat(path, " is locked"));
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    ASSIGN_OR_RETURN(const Entry at, lookup_.Find(folder));
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | at.flags;
    const int fd = openat(at.folder.get(), at.name.c_str(), flags);
    if (fd < 0) return DiskError(errno, "list", folder);
    DIR* const list = fdopendir(fd);
    if (list == nullptr) {
      const int error = errno;
      close(fd);
      return DiskError(error, "list", folder);
    }
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(list)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    const int error = errno;
    closedir(list);
    if (error != 0) return DiskError(error, "list", folder);
    return names;
  }

  absl::Status MakeFolders(const std::string& folder) override {
    const std::filesystem::path path(folder);
    if (path.empty()) return absl::OkStatus();
    const absl::Status there = Open(folder, O_PATH | O_DIRECTORY).status();
    if (!absl::IsNotFound(there)) return there;  // also OK
    const std::string above = path.parent_path().string();
    RETURN_IF_ERROR(MakeFolders(above));
    if (!path.has_filename()) return absl::OkStatus();  // "name/"
    ASSIGN_OR_RETURN(const Entry at, lookup_.Find(folder));
    if (mkdirat(at.folder.get(), at.name.c_str(), 0700) != 0 && errno != EEXIST) {
      return DiskError(errno, "make", folder);
    }
    // The folder that was found, no matter where the path leads by now.
    const std::string parent = at.folder.get() == AT_FDCWD ? FolderOf(folder) : ".";
    Descriptor opened(openat(at.folder.get(), parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened) return DiskError(errno, "open the folder of", folder);
    return LocalDiskFolder(FolderOf(folder), std::move(opened)).Sync();
  }

  absl::StatusOr<std::unique_ptr<DiskFolder>> OpenFolder(const std::string& folder) override {
    ASSIGN_OR_RETURN(Descriptor opened, Open(folder, O_RDONLY | O_DIRECTORY));
    return std::make_unique<LocalDiskFolder>(folder, std::move(opened));
  }

 private:
  absl::StatusOr<Descriptor> Open(const std::string& path, int flags) const {
    ASSIGN_OR_RETURN(const Entry at, lookup_.Find(path));
    Descriptor opened(openat(at.folder.get(), at.name.c_str(), flags | O_CLOEXEC | at.flags));
    if (!opened) return DiskError(errno, "open", path);
    return opened;
  }

  // Makes a file; a new one (O_EXCL) is locked.
  absl::StatusOr<std::unique_ptr<DiskFile>> Make(const std::string& path, int flag,
                                                 Readers readers) const {
    ASSIGN_OR_RETURN(Entry at, lookup_.Find(path));
    const mode_t mode = readers == Readers::kOwner || lookup_.limited() ? 0600 : 0666;
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flag | at.flags;
    const int fd = openat(at.folder.get(), at.name.c_str(), flags, mode);
    if (fd < 0) return DiskError(errno, "create", path);
    // An error means that the file system has no locks.
    if (flag == O_EXCL) flock(fd, LOCK_EX | LOCK_NB);
    return std::make_unique<LocalDiskFile>(path, std::move(at), fd);
  }

  const PathLookup lookup_;
};

}  // namespace

Disk& LocalDisk() {
  static LocalDiskImpl* const disk = new LocalDiskImpl(PathLookup());
  return *disk;
}

std::unique_ptr<Disk> LocalDiskFor(PathLookup lookup) {
  return std::make_unique<LocalDiskImpl>(std::move(lookup));
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
