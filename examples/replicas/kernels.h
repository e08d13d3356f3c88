// SPDX-License-Identifier: Apache-2.0
// Functions that nvcc compiles, for use in code that it does not compile.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

// Queues on `stream` the sums of `rows` images of kPixels each, as LearnOnGpu() returns them. All
// addresses are on the stream's device; `of_rows` has room for `rows` times as many values as
// `sums`.
cudaError_t LearnRows(const float* weights, const float* images, const int64_t* labels, int rows,
                      double* of_rows, double* sums, cudaStream_t stream);
