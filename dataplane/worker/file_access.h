// SPDX-License-Identifier: Apache-2.0
// Which files datasets may read and write on a worker (docs/security.md).
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "control/env/disk.h"
#include "control/env/files.h"
#include "penstock/server.h"

namespace penstock::worker {

// Immutable. Any thread.
class FileAccess {
 public:
  // Allows everything that this user may do.
  FileAccess() = default;
  // Allows what files_allow and cache_dir say. InvalidArgument for an entry of files_allow that is
  // no folder, file or URL.
  static absl::StatusOr<std::shared_ptr<const FileAccess>> Of(const WorkerConfig& config);

  Files& files() const { return files_ == nullptr ? DefaultFiles() : *files_; }
  // Where the files of Cache(filename) are read and written. Both show the same folder.
  Files& cache_files() const { return cache_files_ == nullptr ? LocalFiles() : *cache_files_; }
  Disk& cache_disk() const { return cache_disk_ == nullptr ? LocalDisk() : *cache_disk_; }

 private:
  // nullptr: not limited
  std::unique_ptr<Files> files_;
  std::unique_ptr<Files> cache_files_;
  std::unique_ptr<Disk> cache_disk_;
};

}  // namespace penstock::worker
