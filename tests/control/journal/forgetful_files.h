// SPDX-License-Identifier: Apache-2.0
// Files on a device that forgets what was not synced when it loses power. The program that
// links this has its calls of open, write, fsync, rename and so on pass through here, also those
// that SQLite and the C++ library make.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::control {

// While it lives, the calls that alter what is below its folder are carried out and recorded, and
// nothing there is synced in earnest. The youngest records; those before it wait. Calls elsewhere
// are left alone. Any thread may call any method.
class ForgetfulFiles {
 public:
  // What is in `folder`, which must exist, is on the device. The folder's own name survives.
  explicit ForgetfulFiles(const std::string& folder);
  ~ForgetfulFiles();

  // The folder without links. Names below it are recorded as they are given: begin them with this.
  const std::string& folder() const { return folder_; }
  // How many calls were recorded.
  size_t calls() const;
  // Waits until exactly these bytes were written by one call.
  void WaitForWrite(std::string_view bytes);
  // The next sync fails with EIO. What it should have written can still be read until
  // power is lost, but no later sync writes it, as with Linux.
  void FailTheNextSync();
  // From now on removing a file fails with this errno.
  void RefuseRemovals(int error);

  // Power is lost when the first `calls` calls have returned: makes the new folder `to` as the
  // device may then have it. `random` draws what is there besides what was synced: of the writes
  // to each file and of the new and removed names in each folder the first, the last, any, all or
  // none. A write may be torn, with nothing, zeros or garbage in the place of its rest.
  void LosePower(size_t calls, std::mt19937_64& random, const std::string& to) const;

  // For the functions that take the place of those of libc.
  struct Call {
    enum Kind { kMake, kMakeFolder, kWrite, kResize, kSync, kFailToSync, kRename, kRemove } kind;
    std::string path;        // below the folder; empty: the folder itself
    std::string bytes = {};  // kWrite; the new path of kRename
    uint64_t at = 0;         // kWrite; the new size of kResize
  };
  static ForgetfulFiles* Recording();
  // Whether `path` is here; then it becomes what is behind the folder's name.
  bool Has(std::string& path) const;
  bool Has(int fd, std::string& path) const;
  void Record(Call call);
  // 0, or the errno to fail with.
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
