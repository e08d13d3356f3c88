// SPDX-License-Identifier: Apache-2.0
// The one door through which an examination sees the machine, so that a test can
// show it another one.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "dataplane/transfer/verbs/devices.h"

namespace penstock::doctor {

inline constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// Of this process; the hard one is how far it may raise the soft one by itself.
struct Limit {
  uint64_t soft = kUnlimited;
  uint64_t hard = kUnlimited;
};

struct UcxLibrary {
  std::string path;  // of libucp.so.0, as the loader found it
  int major = 0;
  int minor = 0;
  int release = 0;
};

struct Clocks {
  bool synchronized = false;  // with a time server, by the kernel's word
  absl::Duration wall_step;   // how far the wall clock has run ahead of the boot
                              // clock since the probe was made; negative: fell behind
};

// Any thread; whatever is asked may change between two questions.
class Probe {
 public:
  virtual ~Probe() = default;

  // A file's content without white space at its ends; nothing if it is not there
  // or may not be read.
  virtual std::optional<std::string> Read(const std::string& path) const = 0;
  // Names in a folder, in the order of their bytes; none if it is not there.
  virtual std::vector<std::string> List(const std::string& folder) const = 0;
  // The path behind all symbolic links; nothing if it leads nowhere.
  virtual std::optional<std::string> Resolve(const std::string& path) const = 0;
  // Bytes of the file system that holds `folder`; nothing if there is no such folder.
  virtual std::optional<int64_t> FileSystemBytes(const std::string& folder) const = 0;

  virtual Limit LockedMemoryBytes() const = 0;
  virtual Limit OpenFiles() const = 0;
  virtual Clocks ReadClocks() const = 0;
  // Makes what the shm protocol makes: an anonymous file, sealed; a pidfd.
  virtual absl::Status TryMemfd() const = 0;
  virtual absl::Status TryPidfd() const = 0;
  // Makes such a file of 2 MiB in one page of that size.
  virtual absl::Status TryHugePage() const = 0;

  // Opens a shared library as the program would; where it was found, or NotFound
  // in the loader's words.
  virtual absl::StatusOr<std::string> FindLibrary(const std::string& name) const = 0;
  virtual absl::StatusOr<UcxLibrary> Ucx() const = 0;  // NotFound
  // As DeviceBackend::name() and Count() of the backend that is linked in.
  virtual std::string DeviceBackendName() const = 0;
  virtual absl::StatusOr<int> CountDevices() const = 0;
  // As transfer::verbs::ListDevices().
  virtual absl::StatusOr<std::vector<transfer::verbs::Device>> RdmaDevices() const = 0;
};

}  // namespace penstock::doctor
