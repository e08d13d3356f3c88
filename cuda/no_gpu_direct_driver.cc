// SPDX-License-Identifier: Apache-2.0
// The GpuDirectDriver of a build without the toolkit.
#include "dataplane/memory/device/gpu_direct_driver.h"

namespace penstock {
namespace {

absl::Status NoDriver() {
  return absl::NotFoundError(
      "no GPU: this build has no CUDA support (configure with PENSTOCK_CUDA=ON)");
}

class NoGpuDirect final : public GpuDirectDriver {
 public:
  absl::StatusOr<GpuDirectFacts> Ask(int) override { return NoDriver(); }
  absl::Status FlushWrites(int) override { return NoDriver(); }
};

}  // namespace

GpuDirectDriver& LinkedGpuDirectDriver() {
  static GpuDirectDriver& driver = *new NoGpuDirect;  // used until the process ends
  return driver;
}

}  // namespace penstock
