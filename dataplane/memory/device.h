// SPDX-License-Identifier: Apache-2.0
// The one seam to accelerators. Which backend is behind it is chosen by the linker:
// cuda/backend.cc where the CUDA toolkit was found, else cuda/no_device.cc. Tests
// put a fake device in its place (tests/dataplane/memory/fake_device.h); one suite
// holds for all of them (tests/dataplane/memory/device_conformance.h).
//
// Work on a device is done in the order of its stream, later than the call that
// asks for it. Nothing here waits for the device, unless it says so. Any thread may
// call any method; of one stream or event, one thread at a time.
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

namespace penstock {

// Device memory, given back when destroyed; by then all work on it must be done.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  void* address() const { return address_; }  // not for the host to follow
  size_t bytes() const { return bytes_; }

 protected:
  DeviceMemory(void* address, size_t bytes) : address_(address), bytes_(bytes) {}

 private:
  void* const address_;
  const size_t bytes_;
};

// A place in a stream. May be recorded again, which forgets the earlier place.
// Destroy it only when it is Done(), or has failed, or was never recorded.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Whether all that its stream had before the place is done; true if it was never
  // recorded. An error if the device failed: what the stream did is then unknown,
  // and no later event of it will be done either.
  virtual absl::StatusOr<bool> Done() = 0;
  // The same, and waits for it: for tests and examinations, never on a data path.
  virtual absl::Status Wait() = 0;
};

// A queue of work on one device.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  // Copies; both memories must stay as they are until an event recorded behind this
  // is done. From host memory that is not page-locked it may return late and copy
  // through memory of the driver's. InvalidArgument if a pointer is not what it should be.
  virtual absl::Status CopyToDevice(void* device, const void* host, size_t bytes) = 0;
  virtual absl::Status CopyToHost(void* host, const void* device, size_t bytes) = 0;
  virtual absl::Status Record(DeviceEvent& event) = 0;
  // What is asked of this stream from now on waits, on the device, for the place
  // that `event` has now. It may be of another stream.
  virtual absl::Status WaitFor(const DeviceEvent& event) = 0;
  // The backend's own handle (cudaStream_t), for those who have work of their own.
  virtual void* native() const = 0;
};

// CUDA's names for two default streams. The first is shared by all threads: what it is asked for
// waits for what the threads' own default streams have been asked for. The second is the calling
// thread's own.
inline void* LegacyDefaultStream() {
  return reinterpret_cast<void*>(1);  // NOLINT(performance-no-int-to-ptr)
}
inline void* PerThreadDefaultStream() {
  return reinterpret_cast<void*>(2);  // NOLINT(performance-no-int-to-ptr)
}

enum class MemoryKind {
  kHost,        // that of any program
  kPageLocked,  // host memory that the device reads by itself
  kDevice,      // plain: of cudaMalloc()
  kManaged,     // moves between the two when touched: nothing for a NIC to write to
  kPooled,      // the device's, out of a pool that orders it by streams (cudaMallocAsync())
  kMapped,      // the device's, put together of pieces (cuMemCreate(), expandable segments)
};
std::string_view MemoryKindName(MemoryKind kind);  // "host", "page-locked", …

// A device as it describes itself.
struct DeviceInfo {
  std::string name;  // "NVIDIA H200"
  int64_t memory_bytes = 0;
  std::string pci_address;  // as sysfs has it, "0000:3b:00.0"; empty for what is on no bus
};

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  // "cuda 13.0", or "none" where no backend was built in.
  virtual std::string_view name() const = 0;
  // How many devices this process can use, at least one; NotFound with the reason
  // if it is none. May take a second the first time, when a driver starts.
  virtual absl::StatusOr<int> Count() = 0;
  // The first that this process uses already, also through others; does not begin to.
  virtual std::optional<int> InUse() = 0;

  // Devices have numbers from 0 on. NotFound for one that is not there, in this
  // and the methods below.
  virtual absl::StatusOr<DeviceInfo> Describe(int device) = 0;
  // Page-locks host memory, for all devices of the process.
  virtual Registrar& page_lock() = 0;
  // ResourceExhausted if it has not as much left. Waits for the device: not on a data path.
  virtual absl::StatusOr<std::unique_ptr<DeviceMemory>> Allocate(int device, size_t bytes) = 0;
  // A stream of its own, beside all others.
  virtual absl::StatusOr<std::unique_ptr<DeviceStream>> MakeStream(int device) = 0;
  // A stream that is another's, as its native handle, which must outlive what is returned.
  virtual absl::StatusOr<std::unique_ptr<DeviceStream>> WrapStream(int device, void* native) = 0;
  virtual absl::StatusOr<std::unique_ptr<DeviceEvent>> MakeEvent(int device) = 0;
  // Calls `call` with the device's context current on this thread, for a library that wants one.
  virtual absl::Status WithContext(int device, absl::FunctionRef<absl::Status()> call) = 0;
  // What a pointer of this process points to.
  virtual absl::StatusOr<MemoryKind> KindOf(const void* address) = 0;
};

// The backend that is linked in.
DeviceBackend& LinkedDeviceBackend();

// What it found, in words: "cuda 13.0: 2 devices", "cuda 13.0: no GPU: …".
std::string DescribeDevices(DeviceBackend& backend);

}  // namespace penstock
