// SPDX-License-Identifier: Apache-2.0
// Files on a device that forgets unsynced data when it loses power. The program that links this
// sends its calls of open, write, fsync, rename and so on through here, including the calls that
// SQLite and the C++ library make.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::control {

// While it lives, calls that change files below its folder are carried out and recorded, and
// nothing there is really synced. Only the youngest instance records; earlier ones wait. Calls
// elsewhere are left alone. Any thread may call any method.
class ForgetfulFiles {
 public:
  // The contents of `folder`, which must exist, count as on the device. The folder's own name
  // survives.
  explicit ForgetfulFiles(const std::string& folder);
  ~ForgetfulFiles();

  // The folder without links. Names below it are recorded as they are given, so begin them with
  // this.
  const std::string& folder() const { return folder_; }
  // Returns how many calls were recorded.
  size_t calls() const;
  // Waits until one call has written exactly these bytes.
  void WaitForWrite(std::string_view bytes);
  // Makes the next sync fail with EIO. The data that it should have written can still be read until
  // power is lost, but no later sync writes it, as in Linux.
  void FailTheNextSync();
  // Makes every later removal of a file fail with this errno.
  void RefuseRemovals(int error);

  // Simulates a loss of power after the first `calls` calls have returned: makes the new folder
  // `to` with what the device may then have, as ForgetfulTree::LosePower() says.
  void LosePower(size_t calls, std::mt19937_64& random, const std::string& to) const;

  // For the functions that replace those of libc.
  struct Call {
    enum Kind { kMake, kMakeFolder, kWrite, kResize, kSync, kFailToSync, kRename, kRemove } kind;
    std::string path;        // below the folder; empty: the folder itself
    std::string bytes = {};  // kWrite; the new path of kRename
    uint64_t at = 0;         // kWrite; the new size of kResize
  };
  static ForgetfulFiles* Recording();
  // Returns whether `path` is below the folder; if so, strips the folder's name from it.
  bool Has(std::string& path) const;
  bool Has(int fd, std::string& path) const;
  void Record(Call call);
  // Returns 0, or the errno to fail with.
  int Sync(const std::string& path);
  int refuses_removals() const;

 private:
  const std::string folder_;
  ForgetfulFiles* const before_;
  mutable std::mutex mu_;
  std::condition_variable changed_;
  std::vector<Call> calls_;
  bool sync_fails_ = false;
  int refuses_removals_ = 0;
};

}  // namespace penstock::control
