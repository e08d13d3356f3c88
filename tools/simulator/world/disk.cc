// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/world/disk.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock::simulator {

class SimDisk::SimFile final : public DiskFile {
 public:
  SimFile(SimDisk& disk, int64_t descriptor, std::string path)
      : disk_(disk), descriptor_(descriptor), path_(std::move(path)) {}
  ~SimFile() override { disk_.open_.erase(descriptor_); }

  const std::string& path() const override { return path_; }

  absl::Status Append(std::string_view bytes) override {
    RETURN_IF_ERROR(disk_.Await("append", disk_.times_.append, bytes));
    return file().Append(bytes);
  }

  absl::Status Sync() override {
    RETURN_IF_ERROR(disk_.Await("sync", disk_.times_.sync, path_));
    return file().Sync();
  }

  absl::Status Rename(const std::string& path) override {
    RETURN_IF_ERROR(disk_.Await("rename", disk_.times_.other, path));
    RETURN_IF_ERROR(file().Rename(path));
    path_ = path;
    return absl::OkStatus();
  }

  absl::Status CheckThere() override {
    RETURN_IF_ERROR(disk_.Await("check", disk_.times_.other, path_));
    return file().CheckThere();
  }

 private:
  // REQUIRES: the process lives.
  DiskFile& file() { return *disk_.open_.find(descriptor_)->second; }

  SimDisk& disk_;
  const int64_t descriptor_;
  std::string path_;
};

class SimDisk::SimFolder final : public DiskFolder {
 public:
  SimFolder(SimDisk& disk, std::string path, std::unique_ptr<DiskFolder> folder)
      : disk_(disk), path_(std::move(path)), folder_(std::move(folder)) {}

  absl::Status Sync() override {
    RETURN_IF_ERROR(disk_.Await("sync", disk_.times_.sync, path_));
    return folder_->Sync();
  }

 private:
  SimDisk& disk_;
  const std::string path_;
  const std::unique_ptr<DiskFolder> folder_;
};

SimDisk::SimDisk(Scheduler& scheduler, std::shared_ptr<Process> process, FakeDisk& device,
                 const DiskTimes& times)
    : scheduler_(scheduler),
      process_(std::move(process)),
      device_(device),
      times_(times),
      dice_(process_->dice().Split()) {}

void SimDisk::OnKilled() {
  open_.clear();
}

absl::Status SimDisk::Await(std::string_view operation, const Span& time, std::string_view bytes) {
  RETURN_IF_ERROR(CheckAlive(operation));
  if (const absl::Duration takes = dice_.Draw(time); takes > absl::ZeroDuration()) Sleep(takes);
  RETURN_IF_ERROR(CheckAlive(operation));
  const auto number = static_cast<uint64_t>(device_.operations());
  scheduler_.trace().Add(scheduler_.now(), operation, process_->number(), number, bytes);
  return absl::OkStatus();
}

absl::Status SimDisk::CheckAlive(std::string_view operation) const {
  if (process_->alive()) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat(process_->name(), " was killed before its ", std::string(operation)));
}

absl::StatusOr<std::unique_ptr<DiskFile>> SimDisk::Keep(
    absl::StatusOr<std::unique_ptr<DiskFile>> opened) {
  RETURN_IF_ERROR(opened.status());
  const int64_t descriptor = descriptors_++;
  auto file = std::make_unique<SimFile>(*this, descriptor, (*opened)->path());
  open_[descriptor] = *std::move(opened);
  return file;
}

absl::StatusOr<std::unique_ptr<DiskFile>> SimDisk::Create(const std::string& path,
                                                          Readers readers) {
  RETURN_IF_ERROR(Await("create", times_.other, path));
  return Keep(device_.Create(path, readers));
}

absl::StatusOr<std::unique_ptr<DiskFile>> SimDisk::CreateLocked(const std::string& path) {
  RETURN_IF_ERROR(Await("create", times_.other, path));
  return Keep(device_.CreateLocked(path));
}

absl::StatusOr<std::string> SimDisk::Read(const std::string& path) {
  RETURN_IF_ERROR(Await("read", times_.other, path));
  return device_.Read(path);
}

absl::Status SimDisk::Remove(const std::string& path) {
  RETURN_IF_ERROR(Await("remove", times_.other, path));
  return device_.Remove(path);
}

absl::Status SimDisk::RemoveUnlocked(const std::string& path) {
  RETURN_IF_ERROR(Await("remove", times_.other, path));
  return device_.RemoveUnlocked(path);
}

absl::StatusOr<std::vector<std::string>> SimDisk::List(const std::string& folder) {
  RETURN_IF_ERROR(Await("list", times_.other, folder));
  return device_.List(folder);
}

absl::Status SimDisk::MakeFolders(const std::string& folder) {
  RETURN_IF_ERROR(Await("make", times_.other, folder));
  return device_.MakeFolders(folder);
}

absl::StatusOr<std::unique_ptr<DiskFolder>> SimDisk::OpenFolder(const std::string& folder) {
  RETURN_IF_ERROR(Await("open", times_.other, folder));
  ASSIGN_OR_RETURN(std::unique_ptr<DiskFolder> opened, device_.OpenFolder(folder));
  return std::make_unique<SimFolder>(*this, folder, std::move(opened));
}

}  // namespace penstock::simulator
