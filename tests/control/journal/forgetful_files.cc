// SPDX-License-Identifier: Apache-2.0
#include "tests/control/journal/forgetful_files.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "control/env/forgetful_tree.h"

namespace penstock::control {
namespace {

namespace fs = std::filesystem;
using Call = ForgetfulFiles::Call;

std::atomic<ForgetfulFiles*> recording = nullptr;

void Apply(const Call& call, ForgetfulTree& tree) {
  switch (call.kind) {
    case Call::kMake:
      tree.MakeFile(call.path);
      return;
    case Call::kMakeFolder:
      tree.MakeFolder(call.path);
      return;
    case Call::kRename:
      return tree.Rename(call.path, call.bytes);
    case Call::kRemove:
      return tree.Remove(call.path);
    case Call::kWrite:
      return tree.Write(*tree.Find(call.path), call.at, call.bytes);
    case Call::kResize:
      return tree.Resize(*tree.Find(call.path), call.at);
    case Call::kSync:
      return tree.Sync(*tree.Find(call.path));
    case Call::kFailToSync:
      return tree.FailToSync(*tree.Find(call.path));
  }
}

}  // namespace

ForgetfulFiles::ForgetfulFiles(const std::string& folder)
    : folder_(fs::canonical(folder)), before_(recording) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder_)) {
    const std::string path = entry.path().string().substr(folder_.size());
    if (entry.is_directory()) {
      calls_.push_back({Call::kMakeFolder, path});
    } else {
      std::ifstream file(entry.path(), std::ios::binary);
      calls_.push_back({Call::kMake, path});
      calls_.push_back({Call::kWrite, path, {std::istreambuf_iterator<char>(file), {}}});
      calls_.push_back({Call::kSync, path});
    }
    calls_.push_back({Call::kSync, fs::path(path).parent_path()});
  }
  recording = this;
}

ForgetfulFiles::~ForgetfulFiles() {
  recording = before_;
}

ForgetfulFiles* ForgetfulFiles::Recording() {
  return recording;
}

size_t ForgetfulFiles::calls() const {
  std::lock_guard lock(mu_);
  return calls_.size();
}

void ForgetfulFiles::WaitForWrite(std::string_view bytes) {
  std::unique_lock lock(mu_);
  changed_.wait(lock, [&] {
    return std::any_of(calls_.begin(), calls_.end(), [&](const Call& call) {
      return call.kind == Call::kWrite && call.bytes == bytes;
    });
  });
}

void ForgetfulFiles::FailTheNextSync() {
  std::lock_guard lock(mu_);
  sync_fails_ = true;
}

void ForgetfulFiles::RefuseRemovals(int error) {
  std::lock_guard lock(mu_);
  refuses_removals_ = error;
}

int ForgetfulFiles::refuses_removals() const {
  std::lock_guard lock(mu_);
  return refuses_removals_;
}

void ForgetfulFiles::LosePower(size_t calls, std::mt19937_64& random, const std::string& to) const {
  std::lock_guard lock(mu_);
  ForgetfulTree tree;
  for (size_t i = 0; i < calls; ++i) Apply(calls_[i], tree);
  tree.LosePower(random);
  fs::create_directory(to);
  for (const auto& [path, bytes] : tree.All()) {
    if (bytes.has_value()) {
      std::ofstream(to + "/" + path, std::ios::binary) << *bytes;
    } else {
      fs::create_directory(to + "/" + path);
    }
  }
}

bool ForgetfulFiles::Has(std::string& path) const {
  if (!path.starts_with(folder_) || (path.size() > folder_.size() && path[folder_.size()] != '/'))
    return false;
  path.erase(0, folder_.size());
  return true;
}

bool ForgetfulFiles::Has(int fd, std::string& path) const {
  char its[PATH_MAX];
  const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), its, sizeof its);
  path.assign(its, size < 0 ? 0 : static_cast<size_t>(size));
  return Has(path);
}

void ForgetfulFiles::Record(Call call) {
  std::lock_guard lock(mu_);
  calls_.push_back(std::move(call));
  changed_.notify_all();
}

int ForgetfulFiles::Sync(const std::string& path) {
  std::lock_guard lock(mu_);
  const bool fails = std::exchange(sync_fails_, false);
  calls_.push_back({fails ? Call::kFailToSync : Call::kSync, path});
  return fails ? EIO : 0;
}

}  // namespace penstock::control

// --- Replacements of libc's functions -----------------------------------------------

namespace {

using penstock::control::ForgetfulFiles;
using Call = ForgetfulFiles::Call;

// Returns the function of that name that would be called without this file.
template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int Fail(int error) {
  errno = error;
  return -1;
}

int Open(const char* name, const char* path, int flags, mode_t mode) {
  const int fd = Real<int(const char*, int, ...)>(name)(path, flags, mode);
  ForgetfulFiles* files = ForgetfulFiles::Recording();
  std::string below = path;
  if (fd < 0 || files == nullptr || !files->Has(below)) return fd;
  if ((flags & O_CREAT) != 0) files->Record({Call::kMake, below});
  if ((flags & O_TRUNC) != 0) files->Record({Call::kResize, below});
  return fd;
}

ssize_t Wrote(int fd, const void* bytes, ssize_t size, off_t at) {
  ForgetfulFiles* files = ForgetfulFiles::Recording();
  std::string path;
  if (size > 0 && files != nullptr && files->Has(fd, path)) {
    files->Record({Call::kWrite,
                   path,
                   {static_cast<const char*>(bytes), static_cast<size_t>(size)},
                   static_cast<uint64_t>(at < 0 ? lseek(fd, 0, SEEK_CUR) - size : at)});
  }
  return size;
}

int Resized(int fd, int result, off_t size) {
  ForgetfulFiles* files = ForgetfulFiles::Recording();
  std::string path;
  if (result == 0 && files != nullptr && files->Has(fd, path)) {
    files->Record({Call::kResize, path, "", static_cast<uint64_t>(size)});
  }
  return result;
}

int Sync(const char* name, int fd) {
  ForgetfulFiles* files = ForgetfulFiles::Recording();
  std::string path;
  if (files == nullptr || !files->Has(fd, path)) return Real<int(int)>(name)(fd);
  const int error = files->Sync(path);
  return error == 0 ? 0 : Fail(error);
}

int Remove(const char* name, const char* path) {
  ForgetfulFiles* files = ForgetfulFiles::Recording();
  std::string below = path;
  if (files == nullptr || !files->Has(below)) return Real<int(const char*)>(name)(path);
  if (const int error = files->refuses_removals(); error != 0) return Fail(error);
  const int result = Real<int(const char*)>(name)(path);
  if (result == 0) files->Record({Call::kRemove, below});
  return result;
}

}  // namespace

#pragma GCC visibility push(default)  // they replace functions of the C library
extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return Open("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return Open("open64", path, flags, mode);
}

// The journal names its files below AT_FDCWD, that is, as open(), unlink(), rename() and mkdir()
// do.
int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if (folder == AT_FDCWD) return Open("open", path, flags, mode);
  return Real<int(int, const char*, int, ...)>("openat")(folder, path, flags, mode);
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  if (folder == AT_FDCWD && flags == 0) return Remove("unlink", path);
  return Real<int(int, const char*, int)>("unlinkat")(folder, path, flags);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  return Wrote(fd, bytes, Real<ssize_t(int, const void*, size_t)>("write")(fd, bytes, size), -1);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  auto* real = Real<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  return Wrote(fd, bytes, real(fd, bytes, size, at), at);
}

int ftruncate64(int fd, off64_t size) noexcept {
  return Resized(fd, Real<int(int, off64_t)>("ftruncate64")(fd, size), size);
}

int fsync(int fd) {
  return Sync("fsync", fd);
}

int fdatasync(int fd) {
  return Sync("fdatasync", fd);
}

int unlink(const char* path) noexcept {
  return Remove("unlink", path);
}

int remove(const char* path) noexcept {
  return Remove("remove", path);
}

int rename(const char* from, const char* to) noexcept {
  const int result = Real<int(const char*, const char*)>("rename")(from, to);
  ForgetfulFiles* files = ForgetfulFiles::Recording();
  std::string below = from, new_name = to;
  if (result == 0 && files != nullptr && files->Has(below) && files->Has(new_name)) {
    files->Record({Call::kRename, below, new_name});
  }
  return result;
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  if (from_folder == AT_FDCWD && to_folder == AT_FDCWD) return rename(from, to);
  return Real<int(int, const char*, int, const char*)>("renameat")(from_folder, from, to_folder,
                                                                   to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  const int result = Real<int(const char*, mode_t)>("mkdir")(path, mode);
  ForgetfulFiles* files = ForgetfulFiles::Recording();
  std::string below = path;
  if (result == 0 && files != nullptr && files->Has(below)) {
    files->Record({Call::kMakeFolder, below});
  }
  return result;
}

int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  if (folder == AT_FDCWD) return mkdir(path, mode);
  return Real<int(int, const char*, mode_t)>("mkdirat")(folder, path, mode);
}

}  // extern "C"
#pragma GCC visibility pop
