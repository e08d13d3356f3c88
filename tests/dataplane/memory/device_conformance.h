// SPDX-License-Identifier: Apache-2.0
// Checks of every device backend (dataplane/memory/device/device.h). One suite for the fake
// and the real ones:
//
//   INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformance, testing::Values(LinkedDevice));
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "dataplane/memory/device/device.h"

namespace penstock {

// Returns the backend to test. nullptr: this machine has no device, and the test is skipped, or
// fails if DeviceRequired().
using MakeBackend = std::shared_ptr<DeviceBackend> (*)();

// Whether PENSTOCK_REQUIRE_GPU is set: this machine should have one.
bool DeviceRequired();

class DeviceConformance : public testing::TestWithParam<MakeBackend> {
 protected:
  void SetUp() override;
  DeviceBackend& device() { return *backend_; }

 private:
  std::shared_ptr<DeviceBackend> backend_;
};

}  // namespace penstock
