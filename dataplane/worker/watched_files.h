// SPDX-License-Identifier: Apache-2.0
// The files that a partition reads, watched for errors of the moment.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "control/env/files.h"
#include "control/sync/mutex.h"

namespace penstock::worker {

// Reads through to `files`, which outlive it, as it outlives what it opens. Another replay
// meets other errors of the moment, or none: what a dataset makes of one (an element's
// place, a file left out, an order drawn over what is left) has no index of its own.
class WatchedFiles final : public Files {
 public:
  explicit WatchedFiles(Files& files) : files_(files) {}

  // The first error of the moment; OK before there is one, and then nothing that was made
  // until now depends on any. Any thread.
  absl::Status error() const;

  using Files::Glob;
  using Files::Open;
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name,
                                             CancelFlag cancelled) override;
  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern,
                                                CancelFlag cancelled) override;

 private:
  class WatchedFile;

  void See(const absl::Status& status);

  Files& files_;
  std::atomic<bool> failed_ = false;  // set before anybody is told of the error
  mutable Mutex mu_;
  absl::Status error_ GUARDED_BY(mu_);
};

}  // namespace penstock::worker
