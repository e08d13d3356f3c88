// SPDX-License-Identifier: Apache-2.0
// Steps of a stage in a build without kernels. The error reports that there is no device or, if
// there is one, that this build has no kernels.
#include "dataplane/memory/device/device.h"
#include "include/status_macros.h"
#include "penstock/device_stage.h"

namespace penstock {

absl::Status LaunchStage(int device, void*, const StageStep& step) {
  RETURN_IF_ERROR(CheckStage(step));
  RETURN_IF_ERROR(LinkedDeviceBackend().Describe(device).status());
  return absl::UnimplementedError(
      "this build has no GPU kernels because its CUDA toolkit had no nvcc; run the stage on the "
      "host");
}

}  // namespace penstock
