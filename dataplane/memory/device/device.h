// SPDX-License-Identifier: Apache-2.0
// The only interface to accelerators. The linker chooses the backend: cuda/backend.cc if the CUDA
// toolkit was found, else cuda/no_device.cc. Tests link a fake device instead
// (tests/dataplane/memory/fake_device.h). One suite tests all backends
// (tests/dataplane/memory/device_conformance.h).
//
// Methods queue work on a stream; the device does it later, in the order of the stream. No method
// waits for the device unless its comment says so. Any thread may call any method, but only one
// thread at a time may use a stream or an event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/memory/registrar.h"

#pragma GCC visibility push(default)
namespace penstock {

// Device memory. The destructor frees it; all work that uses it must be done by then.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  void* address() const { return address_; }  // the host cannot read it
  size_t bytes() const { return bytes_; }

 protected:
  DeviceMemory(void* address, size_t bytes) : address_(address), bytes_(bytes) {}

 private:
  void* const address_;
  const size_t bytes_;
};

// A point in a stream. Recording the event again replaces the earlier point. Destroy an event only
// if it is Done(), has failed, or was never recorded.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Returns true if all work queued on the stream before the point is done, or if the event was
  // never recorded. Returns an error if the device failed: the effect of the stream's work is then
  // unknown, and no later event of that stream will be done either.
  virtual absl::StatusOr<bool> Done() = 0;
  // Same as Done(), but waits until the work is done. For tests and diagnostics, never on a data
  // path.
  virtual absl::Status Wait() = 0;
};

// A queue of work on one device.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  // Copies `bytes` bytes. Source and destination must stay unchanged until an event recorded after
  // this call is done. If the host memory is not page-locked, the call may block and copy through
  // memory of the driver. InvalidArgument if a pointer is not of the expected kind.
  virtual absl::Status CopyToDevice(void* device, const void* host, size_t bytes) = 0;
  virtual absl::Status CopyToHost(void* host, const void* device, size_t bytes) = 0;
  virtual absl::Status Record(DeviceEvent& event) = 0;
  // Work queued on this stream after this call waits, on the device, for the current point of
  // `event`, which may be in a different stream.
  virtual absl::Status WaitFor(const DeviceEvent& event) = 0;
  // The backend's own handle (cudaStream_t), for callers that queue work of their own.
  virtual void* native() const = 0;
};

// CUDA's handles of two default streams. All threads share the first: work queued on it waits for
// work queued on the threads' own default streams. The second is the calling thread's own.
inline void* LegacyDefaultStream() {
  return reinterpret_cast<void*>(1);  // NOLINT(performance-no-int-to-ptr)
}
inline void* PerThreadDefaultStream() {
  return reinterpret_cast<void*>(2);  // NOLINT(performance-no-int-to-ptr)
}

enum class MemoryKind {
  kHost,        // ordinary host memory
  kPageLocked,  // host memory that the device reads directly
  kDevice,      // plain device memory, from cudaMalloc()
  kManaged,     // moves between host and device on access; a NIC cannot write to it
  kPooled,      // device memory from a stream-ordered pool (cudaMallocAsync())
  kMapped,      // device memory mapped from pieces (cuMemCreate(), expandable segments)
};
std::string_view MemoryKindName(MemoryKind kind);  // "host", "page-locked", …

// A device's description of itself.
struct DeviceInfo {
  std::string name;  // "NVIDIA H200"
  int64_t memory_bytes = 0;
  std::string pci_address;  // as in sysfs, "0000:3b:00.0"; empty for a device that is not on a bus
};

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  // Returns "cuda 13.0", or "none" if no backend was built in.
  virtual std::string_view name() const = 0;
  // Returns the number of devices that this process can use, at least one. NotFound with the reason
  // if there are none. The first call may take a second, while a driver starts.
  virtual absl::StatusOr<int> Count() = 0;
  // Returns the first device that this process already uses, perhaps through other libraries. Does
  // not make the process use a device.
  virtual std::optional<int> InUse() = 0;

  // Devices are numbered from 0. This method and those below return NotFound for a device that does
  // not exist.
  virtual absl::StatusOr<DeviceInfo> Describe(int device) = 0;
  // Page-locks host memory, for all devices of the process.
  virtual Registrar& page_lock() = 0;
  // ResourceExhausted if the device has fewer than `bytes` bytes of free memory. Waits for the
  // device, so never call it on a data path.
  virtual absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(int device, size_t bytes) = 0;
  // Makes a new stream, independent of all others.
  virtual absl::StatusOr<std::unique_ptr<DeviceStream>> MakeStream(int device) = 0;
  // Wraps the existing stream with the native handle `native`. The stream must outlive the result.
  virtual absl::StatusOr<std::unique_ptr<DeviceStream>> WrapStream(int device, void* native) = 0;
  virtual absl::StatusOr<std::unique_ptr<DeviceEvent>> MakeEvent(int device) = 0;
  // Calls `call` with the device's context current on this thread, for a library that needs one.
  virtual absl::Status WithContext(int device, absl::FunctionRef<absl::Status()> call) = 0;
  // Returns the kind of memory that a pointer of this process points to.
  virtual absl::StatusOr<MemoryKind> KindOf(const void* address) = 0;
};

// Returns the backend that is linked in.
DeviceBackend& LinkedDeviceBackend();

// Describes the devices of `backend`: "cuda 13.0: 2 devices", "cuda 13.0: no GPU: …".
std::string DescribeDevices(DeviceBackend& backend);

}  // namespace penstock
#pragma GCC visibility pop
