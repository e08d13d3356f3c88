// SPDX-License-Identifier: Apache-2.0
// Files in memory, for tests. A test can make reads fail.
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "control/env/files.h"
#include "control/sync/mutex.h"

namespace penstock {

class FakeFiles final : public Files {
 public:
  // Makes or replaces the file `name`. Files that are open keep their old bytes.
  void Put(const std::string& name, std::string bytes);
  // From now on, reads of this file that touch a byte at or after `offset` fail with `error`; OK
  // removes the failure.
  void FailFrom(const std::string& name, int64_t offset, absl::Status error);

  using Files::Glob;
  using Files::Open;
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name, std::stop_token) override;
  // The wildcards * ? [] match only within one directory level.
  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern,
                                                std::stop_token) override;

 private:
  struct Content {
    std::string bytes;
    Mutex mu;
    int64_t fails_from GUARDED_BY(mu) = 0;
    absl::Status failure GUARDED_BY(mu);
  };
  class FakeFile;

  Mutex mu_;
  std::map<std::string, std::shared_ptr<Content>> files_ GUARDED_BY(mu_);
};

}  // namespace penstock
