// SPDX-License-Identifier: Apache-2.0
// Values of replicas on fake devices, for tests without page-locked memory.
#pragma once

#include <cstdlib>

#include "tests/dataplane/replica/fake_gpus.h"
#include "tests/dataplane/replica/on_device.h"

namespace penstock {

// A process checks only once whether memory is page-locked. So cases of such suites do not run in
// one process with cases that need page-locked memory.
class WithoutPageLocks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ::setenv("PENSTOCK_PAGE_LOCK", "off", 1); }
};

}  // namespace penstock
