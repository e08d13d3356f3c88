// SPDX-License-Identifier: Apache-2.0
// Files that all hosts of a simulated cluster can read, as those of a storage service.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/env/fake_files.h"
#include "tools/simulator/engine/scheduler.h"

namespace penstock::simulator {

// To open a file and to read from it takes a drawn time. Used on one thread. Must outlive its open
// files.
class Storage final : public Files {
 public:
  explicit Storage(Scheduler& scheduler) : scheduler_(scheduler) {}

  void Put(const std::string& name, std::string bytes) { files_.Put(name, std::move(bytes)); }

  // Call these on fibers.
  using Files::Glob;
  using Files::Open;
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name,
                                             std::stop_token stop) override;
  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern,
                                                std::stop_token stop) override;

 private:
  class StoredFile;

  Scheduler& scheduler_;
  FakeFiles files_;
};

}  // namespace penstock::simulator
