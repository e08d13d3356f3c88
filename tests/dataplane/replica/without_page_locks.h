// SPDX-License-Identifier: Apache-2.0
// What replicas get on fake devices, for tests without page-locked memory.
#pragma once

#include <cstdlib>

#include "tests/dataplane/replica/fake_gpus.h"
#include "tests/dataplane/replica/on_device.h"

namespace penstock {

// A process asks once whether memory is page-locked: cases of such suites run in a process
// without those that want it to be.
class WithoutPageLocks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ::setenv("PENSTOCK_PAGE_LOCK", "off", 1); }
};

}  // namespace penstock
