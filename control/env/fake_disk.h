// SPDX-License-Identifier: Apache-2.0
// A disk in memory, for tests and the simulator. It fails where a test tells it to, and forgets
// unsynced data when power is lost.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "control/env/disk.h"
#include "control/env/forgetful_tree.h"
#include "control/sync/mutex.h"

namespace penstock {

// Each call of a method of Disk, DiskFile or DiskFolder, except path(), is an operation. Paths are
// absolute. The disk must outlive its open files.
class FakeDisk final : public Disk {
 public:
  // Returns the number of operations that were begun.
  int64_t operations() const;
  // Makes the operation with the number `operation` (counted from 0) fail with `error`; if
  // `for_good`, all later operations too. An append that fails writes half of its bytes. A sync
  // that fails leaves bytes that no later sync makes durable. Any other operation that fails does
  // nothing.
  void FailAt(int64_t operation, absl::Status error, bool for_good = false);
  // Makes an append fail with ResourceExhausted if all files together would then have more than
  // `bytes`. The append writes half of its bytes, or fewer if the disk has no room for half.
  void SetCapacity(uint64_t bytes);
  // Simulates a loss of power (see ForgetfulTree) and the next start, after which no operation
  // fails and no file is locked. Calls on files and folders that were open fail with
  // FailedPrecondition.
  void LosePower(std::mt19937_64& random);

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
  class FakeFile;
  class FakeFolder;

  // Counts an operation, and returns its simulated failure, or OK.
  absl::Status Begin() REQUIRES(mu_);
  uint64_t BytesLeft() const REQUIRES(mu_);
  // FailedPrecondition if power was lost since `start`, in which `path` was opened.
  absl::Status CheckOpen(const std::string& path, int64_t start) const REQUIRES(mu_);
  absl::StatusOr<ForgetfulTree::NodePtr> Find(const std::string& path) REQUIRES(mu_);
  absl::StatusOr<std::unique_ptr<DiskFile>> Open(const std::string& path) REQUIRES(mu_);

  mutable Mutex mu_;
  ForgetfulTree tree_ GUARDED_BY(mu_);
  std::set<std::string> locked_ GUARDED_BY(mu_);
  int64_t operations_ GUARDED_BY(mu_) = 0;
  int64_t starts_ GUARDED_BY(mu_) = 0;
  int64_t fails_at_ GUARDED_BY(mu_) = 0;
  bool for_good_ GUARDED_BY(mu_) = false;
  absl::Status failure_ GUARDED_BY(mu_);                                      // OK: nothing fails
  uint64_t capacity_ GUARDED_BY(mu_) = std::numeric_limits<uint64_t>::max();  // in bytes
};

}  // namespace penstock
