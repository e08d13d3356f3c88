// SPDX-License-Identifier: Apache-2.0
#include "control/env/fake_files.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"

namespace penstock {

class FakeFiles::FakeFile final : public File {
 public:
  FakeFile(std::string name, std::shared_ptr<Content> content)
      : name_(std::move(name)), content_(std::move(content)) {}

  const std::string& name() const override { return name_; }
  int64_t size() const override { return static_cast<int64_t>(content_->bytes.size()); }

  absl::StatusOr<size_t> ReadAt(int64_t offset, absl::Span<char> into) override {
    const size_t got = content_->bytes.copy(
        into.data(), into.size(), std::min(static_cast<size_t>(offset), content_->bytes.size()));
    MutexLock lock(content_->mu);
    if (!content_->failure.ok() && offset + static_cast<int64_t>(got) > content_->fails_from)
      return content_->failure;
    return got;
  }

  void WillReadInOrder(int64_t) override {}
  std::optional<absl::Span<const char>> Map() override {
    MutexLock lock(content_->mu);
    if (!content_->failure.ok()) return std::nullopt;  // ReadAt() returns it
    return absl::MakeConstSpan(content_->bytes);
  }

 private:
  const std::string name_;
  const std::shared_ptr<Content> content_;
};

void FakeFiles::Put(const std::string& name, std::string bytes) {
  auto content = std::make_shared<Content>();
  content->bytes = std::move(bytes);
  MutexLock lock(mu_);
  files_[name] = std::move(content);
}

void FakeFiles::FailFrom(const std::string& name, int64_t offset, absl::Status error) {
  MutexLock lock(mu_);
  Content& content = *files_.at(name);
  MutexLock content_lock(content.mu);
  content.fails_from = offset;
  content.failure = std::move(error);
}

absl::StatusOr<std::unique_ptr<File>> FakeFiles::Open(const std::string& name, std::stop_token) {
  MutexLock lock(mu_);
  auto it = files_.find(name);
  if (it == files_.end()) return absl::NotFoundError(absl::StrCat("cannot open ", name));
  return std::make_unique<FakeFile>(name, it->second);
}

absl::StatusOr<std::vector<std::string>> FakeFiles::Glob(const std::string& pattern,
                                                         std::stop_token) {
  MutexLock lock(mu_);
  std::vector<std::string> names;
  for (const auto& [name, content] : files_)
    if (fnmatch(pattern.c_str(), name.c_str(), FNM_PATHNAME) == 0) names.push_back(name);
  return names;
}

}  // namespace penstock
