// SPDX-License-Identifier: Apache-2.0
// Selects the device for CUDA calls. Pushes and pops the driver's primary contexts, because
// cudaSetDevice() would leave a context of hundreds of MB on a device that the program does not
// use. Private to this folder.
#pragma once

#include <driver_types.h>

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/memory/device/device.h"

namespace penstock::cuda {

// Returns the number of devices; NotFound with the reason if there are none.
absl::StatusOr<int> CountDevices();

// Returns the first device that this process already uses, perhaps through other libraries; nullopt
// if it uses none. Starts nothing.
std::optional<int> FindDeviceInUse();

// Returns the device on which to register memory for all devices: the first that this process
// already uses, or 0 if it uses none yet.
absl::StatusOr<int> DeviceInUse();

// Returns the kind of the device memory at `address`; kDevice if the driver cannot tell.
MemoryKind KindOfDeviceMemory(const void* address);

// Returns a device's attribute, one of CUdevice_attribute; 0 if the driver does not know it.
int DriverAttribute(int device, int attribute);

// While this object exists, the CUDA calls of its thread go to its device. They do not affect a
// graph capture on another thread, which many CUDA calls would otherwise invalidate.
class OnDevice {
 public:
  // NotFound for a device that does not exist. If the process has no primary context on the device
  // yet, makes one, which is slow.
  static absl::StatusOr<OnDevice> Enter(int device);
  OnDevice(OnDevice&& other) noexcept
      : entered_(std::exchange(other.entered_, false)), capture_mode_(other.capture_mode_) {}
  OnDevice& operator=(OnDevice&&) = delete;
  ~OnDevice();

 private:
  OnDevice() = default;
  bool entered_ = true;
  cudaStreamCaptureMode capture_mode_ = cudaStreamCaptureModeRelaxed;  // the thread's previous mode
};

}  // namespace penstock::cuda
