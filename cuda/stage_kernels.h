// SPDX-License-Identifier: Apache-2.0
// The kernels of a stage (penstock/device_stage.h), for code that nvcc does not compile. Private to
// this folder.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace penstock::cuda {

enum class PlaneType { kFloat16, kBFloat16, kFloat32 };

struct ImagesCall {
  const uint8_t* images;
  void* planes;
  PlaneType type;
  int64_t batch;
  int64_t pixels;  // per image
  int channels;
  float scale[4];
  float offset[4];
};

struct PaddedCall {
  const void* values;
  const int64_t* row_splits;
  int64_t rows;
  int64_t width;
  size_t value_bytes;
  void* padded;
  uint64_t padding;
};

struct GatherCall {
  const void* rows;
  int64_t num_rows;
  size_t row_bytes;
  const int64_t* indices;
  int64_t count;
  void* out;
};

// Each function queues one kernel on a stream of the current device. REQUIRES: sizes > 0.
cudaError_t LaunchImages(const ImagesCall& call, cudaStream_t stream);
cudaError_t LaunchPadded(const PaddedCall& call, cudaStream_t stream);
cudaError_t LaunchGather(const GatherCall& call, cudaStream_t stream);

}  // namespace penstock::cuda
