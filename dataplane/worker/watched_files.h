// SPDX-License-Identifier: Apache-2.0
// The files that a partition reads, watched for transient errors.
#pragma once

#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "control/env/files.h"
#include "control/sync/mutex.h"

namespace penstock::worker {

// Forwards to `files`, which must outlive this object. This object must outlive the files that it
// opens. Transient errors differ from one replay to the next. So the effect of such an error on a
// dataset (an error in place of an element, a missing file, an order drawn over the remaining
// files) must not be given an index.
class WatchedFiles final : public Files {
 public:
  explicit WatchedFiles(Files& files) : files_(files) {}

  // Returns the first transient error. If this returns OK, no element made so far depends on a
  // transient error. Any thread.
  absl::Status error() const;

  using Files::Glob;
  using Files::Open;
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name,
                                             std::stop_token stop) override;
  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern,
                                                std::stop_token stop) override;

 private:
  class WatchedFile;

  void See(const absl::Status& status);

  Files& files_;
  std::atomic<bool> failed_ = false;  // true before any caller gets the error
  mutable Mutex mu_;
  absl::Status error_ GUARDED_BY(mu_);
};

}  // namespace penstock::worker
