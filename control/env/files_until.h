// SPDX-License-Identifier: Apache-2.0
// Files whose waits end when a stop is requested, for callers that use a Files without passing a
// stop token.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "control/env/files.h"

namespace penstock {

class FilesUntil final : public Files {
 public:
  // `files` must outlive this object.
  FilesUntil(Files& files, std::stop_token stop) : files_(files), stop_(std::move(stop)) {}

  using Files::Glob;
  using Files::Open;
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name,
                                             std::stop_token stop) override {
    return files_.Open(name, stop.stop_possible() ? std::move(stop) : stop_);
  }
  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern,
                                                std::stop_token stop) override {
    return files_.Glob(pattern, stop.stop_possible() ? std::move(stop) : stop_);
  }

 private:
  Files& files_;
  const std::stop_token stop_;
};

}  // namespace penstock
