// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/watched_files.h"

#include <optional>
#include <stop_token>
#include <utility>

#include "control/sync/mutex.h"
#include "dataplane/dataset/engine/error_origin.h"
#include "include/status_macros.h"

namespace penstock::worker {

class WatchedFiles::WatchedFile final : public File {
 public:
  WatchedFile(WatchedFiles& watch, std::unique_ptr<File> file)
      : watch_(watch), file_(std::move(file)) {}

  const std::string& name() const override { return file_->name(); }
  int64_t size() const override { return file_->size(); }
  absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> into) override {
    absl::StatusOr<size_t> got = file_->ReadAt(offset, into);
    watch_.See(got.status());
    return got;
  }
  void WillReadInOrder(int64_t offset) override { file_->WillReadInOrder(offset); }
  std::optional<absl::Span<const char>> Map() override { return file_->Map(); }

 private:
  WatchedFiles& watch_;
  const std::unique_ptr<File> file_;
};

absl::Status WatchedFiles::error() const {
  if (!failed_.load(std::memory_order_acquire)) return absl::OkStatus();
  MutexLock lock(mu_);
  return error_;
}

void WatchedFiles::See(const absl::Status& status) {
  if (!IsOfTheMoment(status)) return;
  MutexLock lock(mu_);
  error_.Update(status);
  failed_.store(true, std::memory_order_release);
}

absl::StatusOr<std::unique_ptr<File>> WatchedFiles::Open(const std::string& name,
                                                         std::stop_token stop) {
  absl::StatusOr<std::unique_ptr<File>> file = files_.Open(name, std::move(stop));
  See(file.status());
  RETURN_IF_ERROR(file.status());
  return std::make_unique<WatchedFile>(*this, *std::move(file));
}

absl::StatusOr<std::vector<std::string>> WatchedFiles::Glob(const std::string& pattern,
                                                            std::stop_token stop) {
  absl::StatusOr<std::vector<std::string>> names = files_.Glob(pattern, std::move(stop));
  See(names.status());
  return names;
}

}  // namespace penstock::worker
