// SPDX-License-Identifier: Apache-2.0
// The file that says which leader writes to a journal's directory, for a directory that several
// machines mount. Each leader replaces it before it reads the journal, and looks at it again after
// each write, so a leader that was replaced learns of it before it answers anybody. Any
// thread may call Check().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/env/disk.h"

namespace penstock::control {

class LeaderFile {
 public:
  // Makes this process the one that writes to `work_dir`. Aborted if a leader of a later term has
  // written to it.
  static absl::StatusOr<LeaderFile> Take(Disk& disk, const std::string& work_dir, uint64_t term);

  // Aborted if another leader has taken the directory.
  absl::Status Check() const;

 private:
  explicit LeaderFile(std::unique_ptr<DiskFile> file) : file_(std::move(file)) {}

  std::unique_ptr<DiskFile> file_;
};

}  // namespace penstock::control
