// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/env/files.h"
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

class LocalFilesImpl final : public Files {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name, std::stop_token) override {
    const int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC);
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
    glob_t found = {};
    // glob() marks directories with a slash at the end.
    const int outcome = glob(pattern.c_str(), GLOB_MARK | GLOB_NOSORT, nullptr, &found);
    std::vector<std::string> names;
    for (size_t i = 0; outcome == 0 && i < found.gl_pathc; ++i) {
      std::string name = found.gl_pathv[i];
      if (!name.empty() && name.back() != '/') names.push_back(std::move(name));
    }
    globfree(&found);
    if (outcome == GLOB_NOSPACE)
      return absl::ResourceExhaustedError(absl::StrCat("not enough memory to list ", pattern));
    if (outcome == GLOB_ABORTED)
      return absl::UnavailableError(absl::StrCat("cannot list ", pattern));
    std::sort(names.begin(), names.end());
    return names;
  }
};

}  // namespace

Files& LocalFiles() {
  static LocalFilesImpl* const files = new LocalFilesImpl;
  return *files;
}

}  // namespace penstock
