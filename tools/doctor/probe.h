// SPDX-License-Identifier: Apache-2.0
// The only interface through which an examination sees the machine, so that a test can substitute
// another machine.
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

// A limit of this process. The process itself may raise `soft` up to `hard`.
struct Limit {
  uint64_t soft = kUnlimited;
  uint64_t hard = kUnlimited;
};

struct UcxLibrary {
  std::string path;  // of libucp.so.0, as found by the loader
  int major = 0;
  int minor = 0;
  int release = 0;
};

struct Clocks {
  bool synchronized = false;  // with a time server, according to the kernel
  absl::Duration wall_step;   // how far the wall clock ran ahead of the boot clock
                              // since the probe was made; negative: it lost time
};

// Thread-safe. Two calls may see different values.
class Probe {
 public:
  virtual ~Probe() = default;

  // Returns a file's content without white space at its ends; nothing if it does not exist or may
  // not be read.
  virtual std::optional<std::string> Read(const std::string& path) const = 0;
  // Returns the names in a folder, in byte order; none if it does not exist.
  virtual std::vector<std::string> List(const std::string& folder) const = 0;
  // Returns the path with all symbolic links resolved; nothing if it does not exist.
  virtual std::optional<std::string> Resolve(const std::string& path) const = 0;
  // Returns the bytes of the file system that holds `folder`; nothing if that does not exist.
  virtual std::optional<int64_t> FileSystemBytes(const std::string& folder) const = 0;

  virtual Limit LockedMemoryBytes() const = 0;
  virtual Limit OpenFiles() const = 0;
  virtual Clocks ReadClocks() const = 0;
  // Make the objects that the shm protocol needs: a sealed anonymous file, and a pidfd.
  virtual absl::Status TryMemfd() const = 0;
  virtual absl::Status TryPidfd() const = 0;
  // Makes an anonymous file of 2 MiB in one page of that size.
  virtual absl::Status TryHugePage() const = 0;

  // Opens a shared library as the program does. Returns its path; NotFound with the loader's
  // message if that fails.
  virtual absl::StatusOr<std::string> FindLibrary(const std::string& name) const = 0;
  virtual absl::StatusOr<UcxLibrary> Ucx() const = 0;  // NotFound
  // DeviceBackend::name() and Count() of the linked backend.
  virtual std::string DeviceBackendName() const = 0;
  virtual absl::StatusOr<int> CountDevices() const = 0;
  // transfer::verbs::ListDevices().
  virtual absl::StatusOr<std::vector<transfer::verbs::Device>> RdmaDevices() const = 0;
};

}  // namespace penstock::doctor
