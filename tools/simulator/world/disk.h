// SPDX-License-Identifier: Apache-2.0
// A simulated process's access to the disk of its host. Each life of a process has a SimDisk of its
// own; all of a host have one FakeDisk, which keeps the files and can lose power.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/env/disk.h"
#include "control/env/fake_disk.h"
#include "tools/simulator/engine/dice.h"
#include "tools/simulator/engine/process.h"
#include "tools/simulator/engine/scheduler.h"

namespace penstock::simulator {

// How long an operation takes. With zero, it does not wait, and may be called outside of fibers.
struct DiskTimes {
  Span append;
  Span sync;  // of a file or a folder
  Span other;
};

// An operation waits for a drawn time and then happens at once. After the process was killed, each
// operation fails with Aborted and changes nothing, even if it had begun to wait. Used on one
// thread, by fibers of the process. Must outlive its open files and folders.
class SimDisk final : public Disk {
 public:
  // `scheduler` and `device` must outlive the disk.
  SimDisk(Scheduler& scheduler, std::shared_ptr<Process> process, FakeDisk& device,
          const DiskTimes& times);

  // Closes all files of the process, and so releases their locks, as the kernel does. Call this
  // after Process::Kill(). If the host loses its power, call FakeDisk::LosePower() too.
  void OnKilled();

  absl::StatusOr<std::unique_ptr<DiskFile>> Create(const std::string& path,
                                                   Readers readers) override;
  absl::StatusOr<std::unique_ptr<DiskFile>> CreateLocked(const std::string& path) override;
  absl::StatusOr<std::string> Read(const std::string& path) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status RemoveUnlocked(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override;
  absl::Status MakeFolders(const std::string& folder) override;
  absl::StatusOr<std::unique_ptr<DiskFolder>> OpenFolder(const std::string& folder) override;

 private:
  class SimFile;
  class SimFolder;

  // Waits until an operation happens, and adds it to the trace with `bytes`: its path, or what it
  // writes. Returns an error if the process was killed.
  absl::Status Await(std::string_view operation, const Span& time, std::string_view bytes);
  absl::Status CheckAlive(std::string_view operation) const;
  absl::StatusOr<std::unique_ptr<DiskFile>> Keep(absl::StatusOr<std::unique_ptr<DiskFile>> opened);

  Scheduler& scheduler_;
  const std::shared_ptr<Process> process_;
  FakeDisk& device_;
  const DiskTimes times_;
  Dice dice_;
  std::map<int64_t, std::unique_ptr<DiskFile>> open_;  // by descriptor
  int64_t descriptors_ = 0;                            // how many were given; none is used again
};

}  // namespace penstock::simulator
