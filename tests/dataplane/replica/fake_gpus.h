// SPDX-License-Identifier: Apache-2.0
// Fake devices in place of the linked backend, for tests through the public interface. A program
// that links fake_gpus.cc links no other backend.
#pragma once

#include <atomic>
#include <thread>

#include "dataplane/memory/device/gpu_direct_driver.h"
#include "tests/dataplane/memory/fake_device.h"

namespace penstock {

inline constexpr int kFakeGpus = 4;

// Returns the LinkedDeviceBackend() of such a program.
FakeDevice& FakeGpus();

// Sets the LinkedGpuDirectDriver(). nullptr: a driver that allows no NIC to write to such devices.
void UseGpuDirectDriver(GpuDirectDriver* driver);

// Does the devices' work on a thread of its own while it lives.
class RunningGpus {
 public:
  RunningGpus();
  ~RunningGpus();

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace penstock
