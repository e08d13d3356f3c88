// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/world/storage.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock::simulator {
namespace {

constexpr Span kAnswerTime = {absl::Microseconds(100), absl::Milliseconds(30)};

void AwaitAnswer(Scheduler& scheduler) {
  Sleep(scheduler.dice().Draw(kAnswerTime));
}

}  // namespace

class Storage::StoredFile final : public File {
 public:
  StoredFile(Scheduler& scheduler, std::unique_ptr<File> file)
      : scheduler_(scheduler), file_(std::move(file)) {}

  const std::string& name() const override { return file_->name(); }
  int64_t size() const override { return file_->size(); }
  absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> into) override {
    AwaitAnswer(scheduler_);
    return file_->ReadAt(offset, into);
  }
  void WillReadInOrder(int64_t) override {}

 private:
  Scheduler& scheduler_;
  const std::unique_ptr<File> file_;
};

absl::StatusOr<std::unique_ptr<File>> Storage::Open(const std::string& name, std::stop_token stop) {
  AwaitAnswer(scheduler_);
  ASSIGN_OR_RETURN(std::unique_ptr<File> file, files_.Open(name, std::move(stop)));
  return std::make_unique<StoredFile>(scheduler_, std::move(file));
}

absl::StatusOr<std::vector<std::string>> Storage::Glob(const std::string& pattern,
                                                       std::stop_token stop) {
  AwaitAnswer(scheduler_);
  return files_.Glob(pattern, std::move(stop));
}

}  // namespace penstock::simulator
