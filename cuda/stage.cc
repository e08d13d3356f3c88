// SPDX-License-Identifier: Apache-2.0
// Steps of a stage on a device.
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>

#include "cuda/context.h"
#include "cuda/error.h"
#include "cuda/stage_kernels.h"
#include "include/status_macros.h"
#include "penstock/device_stage.h"

namespace penstock {
namespace {

using cuda::ToStatus;

// A range in the profiler's timeline; does nothing without a profiler.
class Range {
 public:
  explicit Range(const char* name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

cuda::PlaneType TypeOf(DType dtype) {
  if (dtype == kFloat16) return cuda::PlaneType::kFloat16;
  return dtype == kBFloat16 ? cuda::PlaneType::kBFloat16 : cuda::PlaneType::kFloat32;
}

absl::Status Launch(const ImagesToPlanes& step, cudaStream_t stream) {
  if (step.batch * step.height * step.width == 0) return absl::OkStatus();
  const Range range("penstock: images to planes");
  cuda::ImagesCall call{.images = static_cast<const uint8_t*>(step.images),
                        .planes = step.planes,
                        .type = TypeOf(step.dtype),
                        .batch = step.batch,
                        .pixels = step.height * step.width,
                        .channels = step.channels};
  std::copy(step.scale.begin(), step.scale.end(), call.scale);
  std::copy(step.offset.begin(), step.offset.end(), call.offset);
  return ToStatus(cuda::LaunchImages(call, stream), "the kernel of ImagesToPlanes");
}

absl::Status Launch(const RaggedToPadded& step, cudaStream_t stream) {
  if (step.rows * step.width == 0) return absl::OkStatus();
  const Range range("penstock: ragged to padded");
  return ToStatus(cuda::LaunchPadded({step.values, step.row_splits, step.rows, step.width,
                                      step.value_bytes, step.padded, step.padding},
                                     stream),
                  "the kernel of RaggedToPadded");
}

absl::Status Launch(const GatherRows& step, cudaStream_t stream) {
  if (step.count == 0 || step.row_bytes == 0) return absl::OkStatus();
  const Range range("penstock: gather rows");
  return ToStatus(
      cuda::LaunchGather(
          {step.rows, step.num_rows, step.row_bytes, step.indices, step.count, step.out}, stream),
      "the kernel of GatherRows");
}

}  // namespace

absl::Status LaunchStage(int device, void* stream, const StageStep& step) {
  RETURN_IF_ERROR(CheckStage(step));
  ASSIGN_OR_RETURN(const cuda::OnDevice on, cuda::OnDevice::Enter(device));
  return std::visit([&](const auto& its) { return Launch(its, static_cast<cudaStream_t>(stream)); },
                    step);
}

}  // namespace penstock
