// SPDX-License-Identifier: Apache-2.0
// Files whose waits end when a flag is set, for callers that get a Files and pass no flag.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/env/files.h"

namespace penstock {

class FilesUntil final : public Files {
 public:
  // Both must outlive it.
  FilesUntil(Files& files, CancelFlag cancelled) : files_(files), cancelled_(cancelled) {}

  using Files::Glob;
  using Files::Open;
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name,
                                             CancelFlag cancelled) override {
    return files_.Open(name, cancelled != nullptr ? cancelled : cancelled_);
  }
  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern,
                                                CancelFlag cancelled) override {
    return files_.Glob(pattern, cancelled != nullptr ? cancelled : cancelled_);
  }

 private:
  Files& files_;
  const CancelFlag cancelled_;
};

}  // namespace penstock
