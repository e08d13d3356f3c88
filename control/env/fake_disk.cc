// SPDX-License-Identifier: Apache-2.0
#include "control/env/fake_disk.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock {

class FakeDisk::FakeFile final : public DiskFile {
 public:
  FakeFile(FakeDisk& disk, std::string path, ForgetfulTree::NodePtr node, int64_t start)
      : disk_(disk), path_(std::move(path)), node_(std::move(node)), start_(start) {}
  ~FakeFile() override {
    MutexLock lock(disk_.mu_);
    if (start_ == disk_.starts_) disk_.locked_.erase(path_);
  }

  const std::string& path() const override { return path_; }

  absl::Status Append(std::string_view bytes) override {
    MutexLock lock(disk_.mu_);
    RETURN_IF_ERROR(disk_.CheckOpen(path_, start_));
    absl::Status failure = disk_.Begin();
    const uint64_t left = disk_.BytesLeft();
    if (failure.ok() && bytes.size() > left) failure = DiskError(ENOSPC, "write", path_);
    if (!failure.ok()) bytes = bytes.substr(0, std::min<uint64_t>(bytes.size() / 2, left));
    disk_.tree_.Write(*node_, disk_.tree_.Size(*node_), bytes);
    return failure;
  }

  absl::Status Sync() override {
    MutexLock lock(disk_.mu_);
    RETURN_IF_ERROR(disk_.CheckOpen(path_, start_));
    const absl::Status failure = disk_.Begin();
    failure.ok() ? disk_.tree_.Sync(*node_) : disk_.tree_.FailToSync(*node_);
    return failure;
  }

  absl::Status Rename(const std::string& path) override {
    MutexLock lock(disk_.mu_);
    RETURN_IF_ERROR(disk_.CheckOpen(path_, start_));
    RETURN_IF_ERROR(disk_.Begin());
    disk_.tree_.Rename(path_, path);
    if (disk_.locked_.erase(path_) > 0) disk_.locked_.insert(path);
    path_ = path;
    return absl::OkStatus();
  }

  absl::Status CheckThere() override {
    MutexLock lock(disk_.mu_);
    RETURN_IF_ERROR(disk_.CheckOpen(path_, start_));
    RETURN_IF_ERROR(disk_.Begin());
    ASSIGN_OR_RETURN(const ForgetfulTree::NodePtr there, disk_.Find(path_));
    if (there == node_) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("another file has replaced ", path_));
  }

 private:
  FakeDisk& disk_;
  std::string path_;
  const ForgetfulTree::NodePtr node_;
  const int64_t start_;  // the machine start in which it was opened
};

class FakeDisk::FakeFolder final : public DiskFolder {
 public:
  FakeFolder(FakeDisk& disk, std::string path, int64_t start)
      : disk_(disk), path_(std::move(path)), start_(start) {}

  absl::Status Sync() override {
    MutexLock lock(disk_.mu_);
    RETURN_IF_ERROR(disk_.CheckOpen(path_, start_));
    RETURN_IF_ERROR(disk_.Begin());
    ASSIGN_OR_RETURN(const ForgetfulTree::NodePtr folder, disk_.Find(path_));
    disk_.tree_.Sync(*folder);
    return absl::OkStatus();
  }

 private:
  FakeDisk& disk_;
  const std::string path_;
  const int64_t start_;  // the machine start in which it was opened
};

int64_t FakeDisk::operations() const {
  MutexLock lock(mu_);
  return operations_;
}

void FakeDisk::FailAt(int64_t operation, absl::Status error, bool for_good) {
  MutexLock lock(mu_);
  fails_at_ = operation;
  for_good_ = for_good;
  failure_ = std::move(error);
}

void FakeDisk::SetCapacity(uint64_t bytes) {
  MutexLock lock(mu_);
  capacity_ = bytes;
}

void FakeDisk::LosePower(std::mt19937_64& random) {
  MutexLock lock(mu_);
  tree_.LosePower(random);
  ++starts_;
  locked_.clear();
  failure_ = absl::OkStatus();
}

absl::Status FakeDisk::Begin() {
  const int64_t operation = operations_++;
  const bool fails = for_good_ ? operation >= fails_at_ : operation == fails_at_;
  return fails ? failure_ : absl::OkStatus();
}

uint64_t FakeDisk::BytesLeft() const {
  const uint64_t used = tree_.SizeOfAll();
  return used < capacity_ ? capacity_ - used : 0;
}

absl::Status FakeDisk::CheckOpen(const std::string& path, int64_t start) const {
  if (start == starts_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(path, " was open when power was lost"));
}

absl::StatusOr<ForgetfulTree::NodePtr> FakeDisk::Find(const std::string& path) {
  ForgetfulTree::NodePtr found = tree_.Find(path);
  if (found == nullptr) return DiskError(ENOENT, "find", path);
  return found;
}

absl::StatusOr<std::unique_ptr<DiskFile>> FakeDisk::Open(const std::string& path) {
  RETURN_IF_ERROR(Find(FolderOf(path)).status());
  return std::make_unique<FakeFile>(*this, path, tree_.MakeFile(path), starts_);
}

absl::StatusOr<std::unique_ptr<DiskFile>> FakeDisk::Create(const std::string& path, Readers) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Begin());
  ASSIGN_OR_RETURN(std::unique_ptr<DiskFile> file, Open(path));
  tree_.Resize(*tree_.Find(path), 0);
  return file;
}

absl::StatusOr<std::unique_ptr<DiskFile>> FakeDisk::CreateLocked(const std::string& path) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Begin());
  if (tree_.Find(path) != nullptr) return DiskError(EEXIST, "create", path);
  ASSIGN_OR_RETURN(std::unique_ptr<DiskFile> file, Open(path));
  locked_.insert(path);
  return file;
}

absl::StatusOr<std::string> FakeDisk::Read(const std::string& path) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Begin());
  ASSIGN_OR_RETURN(const ForgetfulTree::NodePtr file, Find(path));
  return tree_.Read(*file);
}

absl::Status FakeDisk::Remove(const std::string& path) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Begin());
  if (tree_.Find(path) != nullptr) tree_.Remove(path);
  return absl::OkStatus();
}

absl::Status FakeDisk::RemoveUnlocked(const std::string& path) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Begin());
  RETURN_IF_ERROR(Find(path).status());
  if (locked_.contains(path)) return absl::UnavailableError(absl::StrCat(path, " is locked"));
  tree_.Remove(path);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> FakeDisk::List(const std::string& folder) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Begin());
  ASSIGN_OR_RETURN(const ForgetfulTree::NodePtr found, Find(folder));
  return tree_.List(*found);
}

absl::Status FakeDisk::MakeFolders(const std::string& folder) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Begin());
  for (size_t slash = 0; slash != folder.npos;) {
    slash = folder.find('/', slash + 1);
    const std::string path = folder.substr(0, slash);
    tree_.MakeFolder(path);
    tree_.Sync(*tree_.Find(FolderOf(path)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DiskFolder>> FakeDisk::OpenFolder(const std::string& folder) {
  MutexLock lock(mu_);
  RETURN_IF_ERROR(Begin());
  RETURN_IF_ERROR(Find(folder).status());
  return std::make_unique<FakeFolder>(*this, folder, starts_);
}

}  // namespace penstock
