// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/env/allowed_files.h"
#include "control/env/files.h"
#include "control/env/path_lookup.h"
#include "include/status_macros.h"
#include "penstock/status.h"

namespace penstock {
namespace {

// An error of a disk or of a file server (EIO, ESTALE) counts as temporary, not as a fault in the
// data.
absl::Status FileError(int error, const std::string& what) {
  if (error == EIO || error == ESTALE) {
    return absl::UnavailableError(absl::StrCat(what, ": ", std::generic_category().message(error)));
  }
  return absl::ErrnoToStatus(error, what);
}

class LocalFile final : public File {
 public:
  LocalFile(std::string name, int fd, int64_t size)
      : name_(std::move(name)), fd_(fd), size_(size) {}
  ~LocalFile() override {
    if (mapped_ != MAP_FAILED) munmap(mapped_, size_);
    close(fd_);
  }

  const std::string& name() const override { return name_; }
  int64_t size() const override { return size_; }

  absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> into) override {
    size_t done = 0;
    while (done < into.size()) {
      const ssize_t got = pread(fd_, into.data() + done, into.size() - done, offset + done);
      if (got == 0) break;
      if (got < 0 && errno == EINTR) continue;
      if (got < 0)
        return FileError(errno, absl::StrCat("cannot read ", name_, " at ", offset + done));
      done += got;
    }
    return done;
  }

  void WillReadInOrder(int64_t offset) override {
    posix_fadvise(fd_, offset, 0, POSIX_FADV_SEQUENTIAL);
  }
  std::optional<absl::Span<const char>> Map() override {
    if (size_ == 0) return absl::Span<const char>();
    std::call_once(once_,
                   [this] { mapped_ = mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_, 0); });
    if (mapped_ == MAP_FAILED) return std::nullopt;
    return absl::Span<const char>(static_cast<const char*>(mapped_), size_);
  }

 private:
  const std::string name_;
  const int fd_;
  const int64_t size_;
  std::once_flag once_;
  void* mapped_ = MAP_FAILED;  // set once
};

// Runs glob(3), whose look-ups of limited paths go through `lookup`. Used by one thread, once.
class Listing {
 public:
  explicit Listing(const PathLookup& lookup) : lookup_(lookup) {}

  absl::StatusOr<std::vector<std::string>> Run(const std::string& pattern) {
    glob_t found = {};
    // glob() marks directories with a slash at the end.
    int flags = GLOB_MARK | GLOB_NOSORT;
    if (lookup_.limited()) {
      flags |= GLOB_ALTDIRFUNC;
      found.gl_opendir = OpenFolder;
      found.gl_readdir = [](void* folder) { return readdir(static_cast<DIR*>(folder)); };
      found.gl_closedir = [](void* folder) { closedir(static_cast<DIR*>(folder)); };
      found.gl_stat = Examine;
      found.gl_lstat = Examine;
    }
    current_ = this;
    const int outcome = glob(pattern.c_str(), flags, nullptr, &found);
    current_ = nullptr;
    std::vector<std::string> names;
    for (size_t i = 0; outcome == 0 && i < found.gl_pathc; ++i) {
      std::string name = found.gl_pathv[i];
      if (!name.empty() && name.back() != '/') names.push_back(std::move(name));
    }
    globfree(&found);
    RETURN_IF_ERROR(denied_);
    if (outcome == GLOB_NOSPACE)
      return absl::ResourceExhaustedError(absl::StrCat("not enough memory to list ", pattern));
    if (outcome == GLOB_ABORTED)
      return absl::UnavailableError(absl::StrCat("cannot list ", pattern));
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  static void* OpenFolder(const char* path) {
    const std::optional<PathLookup::Entry> at = current_->Find(path);
    if (!at.has_value()) return nullptr;
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | at->flags;
    const int fd = openat(at->folder.get(), at->name.c_str(), flags);
    if (fd < 0) return nullptr;
    DIR* const folder = fdopendir(fd);
    if (folder == nullptr) close(fd);
    return folder;
  }

  static int Examine(const char* path, struct stat* about) {
    const std::optional<PathLookup::Entry> at = current_->Find(path);
    if (!at.has_value()) return -1;
    return fstatat(at->folder.get(), at->name.c_str(), about, AT_SYMLINK_NOFOLLOW);
  }

  // Sets errno if there is no such entry. glob() skips it then, so Run() must report a path that is
  // not allowed: files would otherwise be left out in silence.
  std::optional<PathLookup::Entry> Find(const char* path) {
    absl::StatusOr<PathLookup::Entry> at = lookup_.Find(path);
    if (at.ok()) return *std::move(at);
    if (absl::IsPermissionDenied(at.status())) denied_.Update(at.status());
    errno = absl::IsNotFound(at.status()) ? ENOENT : EACCES;
    return std::nullopt;
  }

  static thread_local Listing* current_;  // glob() passes no argument to its functions

  const PathLookup& lookup_;
  absl::Status denied_;
};
thread_local Listing* Listing::current_ = nullptr;

class LocalFilesImpl final : public Files {
 public:
  explicit LocalFilesImpl(PathLookup lookup) : lookup_(std::move(lookup)) {}

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name, std::stop_token) override {
    ASSIGN_OR_RETURN(const PathLookup::Entry at, lookup_.Find(name));
    const int fd = openat(at.folder.get(), at.name.c_str(), O_RDONLY | O_CLOEXEC | at.flags);
    if (fd < 0) return FileError(errno, absl::StrCat("cannot open ", name));
    struct stat about;
    if (fstat(fd, &about) != 0) {
      const int error = errno;
      close(fd);
      return FileError(error, absl::StrCat("cannot examine ", name));
    }
    if (S_ISDIR(about.st_mode)) {
      close(fd);
      return absl::InvalidArgumentError(absl::StrCat(name, " is a directory, not a file"));
    }
    return std::make_unique<LocalFile>(name, fd, about.st_size);
  }

  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern,
                                                std::stop_token) override {
    RETURN_IF_ERROR(CheckPath(pattern));
    return Listing(lookup_).Run(pattern);
  }

 private:
  const PathLookup lookup_;
};

}  // namespace

Files& LocalFiles() {
  static LocalFilesImpl* const files = new LocalFilesImpl(PathLookup());
  return *files;
}

std::unique_ptr<Files> LocalFilesFor(PathLookup lookup) {
  return std::make_unique<LocalFilesImpl>(std::move(lookup));
}

}  // namespace penstock
