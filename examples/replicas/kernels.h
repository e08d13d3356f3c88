// SPDX-License-Identifier: Apache-2.0
// What nvcc compiles, for what it does not.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

// Puts on `stream`: sums of `rows` images, each kPixels, as LearnOnGpu() gives them. All are
// addresses on its device; `of_rows` has room for `rows` times as many as `sums`.
cudaError_t LearnRows(const float* weights, const float* images, const int64_t* labels, int rows,
                      double* of_rows, double* sums, cudaStream_t stream);
