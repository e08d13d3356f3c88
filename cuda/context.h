// SPDX-License-Identifier: Apache-2.0
// On which device a call of ours works. The driver's primary contexts are pushed
// and popped, since cudaSetDevice() would leave a context of some hundred MB behind
// on a device that the program does not use. Private to this folder.
#pragma once

#include <driver_types.h>

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/memory/device.h"

namespace penstock::cuda {

// How many devices there are; NotFound with the reason if none.
absl::StatusOr<int> CountDevices();

// The first device that this process uses already, also through others; nullopt if it uses none.
// Starts nothing.
std::optional<int> FindDeviceInUse();

// The device that memory for all of them is best registered on: the first that
// this process uses already, or 0 if it uses none yet.
absl::StatusOr<int> DeviceInUse();

// How memory that is a device's was made. kDevice if the driver cannot say.
MemoryKind KindOfDeviceMemory(const void* address);

// A device's attribute, one of CUdevice_attribute; 0 if the driver does not know it.
int DriverAttribute(int device, int attribute);

// While it lives, CUDA calls of this thread are for that device, and take no part in what
// another thread captures into a graph: else many of them would make such a capture invalid.
class OnDevice {
 public:
  // NotFound for a device that is not there. Makes the device's primary context if
  // the process has none yet, which takes a while.
  static absl::StatusOr<OnDevice> Enter(int device);
  OnDevice(OnDevice&& other) noexcept
      : entered_(std::exchange(other.entered_, false)), capture_mode_(other.capture_mode_) {}
  OnDevice& operator=(OnDevice&&) = delete;
  ~OnDevice();

 private:
  OnDevice() = default;
  bool entered_ = true;
  cudaStreamCaptureMode capture_mode_ = cudaStreamCaptureModeRelaxed;  // the thread's before
};

}  // namespace penstock::cuda
