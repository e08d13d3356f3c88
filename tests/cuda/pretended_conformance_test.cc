// SPDX-License-Identifier: Apache-2.0
// The suite of all device backends, over cuda/backend.cc on the pretended CUDA. It copies from
// pageable memory on purpose, so that rule does not apply here; all others do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda/pretended_cuda.h"
#include "tests/dataplane/memory/device_conformance.h"

namespace penstock {
namespace {

// Destroyed at the end of its case, after all other objects of the case.
struct NoViolations {
  ~NoViolations() {
    EXPECT_THAT(pretended_cuda::TakeViolations(), testing::IsEmpty());
    EXPECT_TRUE(pretended_cuda::ThreadIsUntouched());
  }
};

std::shared_ptr<DeviceBackend> CudaOnPretended() {
  static const bool begun = [] {
    pretended_cuda::Begin({.devices = 2, .named = {0}, .pageable_copies = true});
    return true;
  }();
  EXPECT_TRUE(begun);
  return {std::make_shared<NoViolations>(), &LinkedDeviceBackend()};
}

INSTANTIATE_TEST_SUITE_P(PretendedCuda, DeviceConformance, testing::Values(CudaOnPretended));

}  // namespace
}  // namespace penstock
