// SPDX-License-Identifier: Apache-2.0
// Files in memory, for tests; they fail where told to.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "control/env/files.h"

namespace penstock {

class FakeFiles final : public Files {
 public:
  // Makes the file, or takes its place. Files open already keep their bytes.
  void Put(const std::string& name, std::string bytes);
  // From now on, reads of this file that touch a byte at or behind `offset`
  // fail with `error`; OK mends it.
  void FailFrom(const std::string& name, int64_t offset, absl::Status error);

  using Files::Glob;
  using Files::Open;
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name, CancelFlag) override;
  // Patterns of one directory level: * ? [].
  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern, CancelFlag) override;

 private:
  struct Content {
    std::string bytes;
    std::mutex mu;
    int64_t fails_from = 0;  // guarded by mu
    absl::Status failure;    // guarded by mu
  };
  class FakeFile;

  std::mutex mu_;
  std::map<std::string, std::shared_ptr<Content>> files_;  // guarded by mu_
};

}  // namespace penstock
