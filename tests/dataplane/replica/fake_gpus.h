// SPDX-License-Identifier: Apache-2.0
// Fake devices in the place of the backend that is linked in, for tests through the
// public interface. A program that links fake_gpus.cc links no other backend.
#pragma once

#include <atomic>
#include <thread>

#include "dataplane/memory/gpu_direct_driver.h"
#include "tests/dataplane/memory/fake_device.h"

namespace penstock {

inline constexpr int kFakeGpus = 4;

// What LinkedDeviceBackend() gives in such a program.
FakeDevice& FakeGpus();

// What LinkedGpuDirectDriver() gives from now on; nullptr: one that says no NIC may write to
// such devices.
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
