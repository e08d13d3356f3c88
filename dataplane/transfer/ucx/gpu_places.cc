// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/gpu_places.h"

#include <memory>

#include "dataplane/transfer/ucx/gpu_direct.h"
#include "dataplane/transfer/ucx/gpu_direct_calls.h"

namespace penstock::transfer::ucx {

DeviceLanding::Open OpenGpuPlaces(const Resources& resources) {
  return [&resources](
             DeviceBackend& backend, GpuDirectDriver& driver, int device,
             absl::Span<std::byte> places) -> absl::StatusOr<std::unique_ptr<Registration>> {
    UcxGpuDirect calls(resources.fabric, backend, driver, resources.now);
    const GpuDirectVerdict verdict = DecideGpuDirect(calls, device, places);
    if (verdict.on)
      return std::make_unique<GpuPlaces>(places, resources.fabric, verdict.handle, verdict.flush);
    if (verdict.in_doubt) return absl::DeadlineExceededError(verdict.ToString());
    return absl::FailedPreconditionError(verdict.ToString());
  };
}

}  // namespace penstock::transfer::ucx
