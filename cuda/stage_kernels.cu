// SPDX-License-Identifier: Apache-2.0
// Memory bandwidth limits these kernels. Every thread therefore strides over the output, so that
// the output is written in order, and index arithmetic stays out of the inner loop.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>

#include "cuda/stage_kernels.h"

namespace penstock::cuda {
namespace {

constexpr int kThreads = 256;
// Enough blocks for all multiprocessors of current devices; more blocks would only wait.
constexpr int64_t kMostBlocks = 4096;

int Blocks(int64_t items) {
  return static_cast<int>(std::min((items + kThreads - 1) / kThreads, kMostBlocks));
}

__device__ int64_t First() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ int64_t Stride() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

template <class T>
__device__ T Rounded(float value);
template <>
__device__ float Rounded(float value) {
  return value;
}
template <>
__device__ __half Rounded(float value) {
  return __float2half_rn(value);
}
template <>
__device__ __nv_bfloat16 Rounded(float value) {
  return __float2bfloat16_rn(value);
}

// One thread per pixel. It reads the pixel's channels, which are adjacent, and neighbouring threads
// write adjacent values of each plane.
template <class T, int kChannels>
__global__ void Images(ImagesCall call) {
  const int64_t all = call.batch * call.pixels;
  T* const planes = static_cast<T*>(call.planes);
  for (int64_t i = First(); i < all; i += Stride()) {
    const int64_t image = i / call.pixels;
    const int64_t pixel = i - image * call.pixels;
    const uint8_t* const from = call.images + i * kChannels;
    T* const to = planes + image * kChannels * call.pixels + pixel;
#pragma unroll
    for (int channel = 0; channel < kChannels; ++channel) {
      to[channel * call.pixels] = Rounded<T>(
          __fmaf_rn(static_cast<float>(from[channel]), call.scale[channel], call.offset[channel]));
    }
  }
}

template <class T>
void LaunchImagesOf(const ImagesCall& call, cudaStream_t stream) {
  const int blocks = Blocks(call.batch * call.pixels);
  switch (call.channels) {
    case 1:
      return Images<T, 1><<<blocks, kThreads, 0, stream>>>(call);
    case 2:
      return Images<T, 2><<<blocks, kThreads, 0, stream>>>(call);
    case 3:
      return Images<T, 3><<<blocks, kThreads, 0, stream>>>(call);
    default:
      return Images<T, 4><<<blocks, kThreads, 0, stream>>>(call);
  }
}

template <class T>
__global__ void Padded(PaddedCall call) {
  const int64_t all = call.rows * call.width;
  const T* const values = static_cast<const T*>(call.values);
  T* const padded = static_cast<T*>(call.padded);
  for (int64_t i = First(); i < all; i += Stride()) {
    const int64_t row = i / call.width;
    const int64_t at = call.row_splits[row] + (i - row * call.width);
    padded[i] = at < call.row_splits[row + 1] ? values[at] : static_cast<T>(call.padding);
  }
}

// Copies rows as words of type T; a row is a whole number of words.
template <class T>
__global__ void Gather(GatherCall call) {
  const int64_t words = static_cast<int64_t>(call.row_bytes / sizeof(T));
  const int64_t all = call.count * words;
  const T* const rows = static_cast<const T*>(call.rows);
  T* const out = static_cast<T*>(call.out);
  for (int64_t i = First(); i < all; i += Stride()) {
    const int64_t to = i / words;
    const int64_t row = call.indices[to];
    const bool there = row >= 0 && row < call.num_rows;
    out[i] = there ? rows[row * words + (i - to * words)] : T{};
  }
}

template <class T>
bool Fits(const GatherCall& call) {
  const auto rows = reinterpret_cast<uintptr_t>(call.rows);
  const auto out = reinterpret_cast<uintptr_t>(call.out);
  return (call.row_bytes | rows | out) % sizeof(T) == 0;
}

template <class T>
void LaunchGatherOf(const GatherCall& call, cudaStream_t stream) {
  const auto words = static_cast<int64_t>(call.row_bytes / sizeof(T));
  Gather<T><<<Blocks(call.count * words), kThreads, 0, stream>>>(call);
}

}  // namespace

cudaError_t LaunchImages(const ImagesCall& call, cudaStream_t stream) {
  switch (call.type) {
    case PlaneType::kFloat16:
      LaunchImagesOf<__half>(call, stream);
      break;
    case PlaneType::kBFloat16:
      LaunchImagesOf<__nv_bfloat16>(call, stream);
      break;
    case PlaneType::kFloat32:
      LaunchImagesOf<float>(call, stream);
      break;
  }
  return cudaGetLastError();
}

cudaError_t LaunchPadded(const PaddedCall& call, cudaStream_t stream) {
  const int blocks = Blocks(call.rows * call.width);
  switch (call.value_bytes) {
    case 1:
      Padded<uint8_t><<<blocks, kThreads, 0, stream>>>(call);
      break;
    case 2:
      Padded<uint16_t><<<blocks, kThreads, 0, stream>>>(call);
      break;
    case 4:
      Padded<uint32_t><<<blocks, kThreads, 0, stream>>>(call);
      break;
    default:
      Padded<uint64_t><<<blocks, kThreads, 0, stream>>>(call);
  }
  return cudaGetLastError();
}

cudaError_t LaunchGather(const GatherCall& call, cudaStream_t stream) {
  if (Fits<uint4>(call))
    LaunchGatherOf<uint4>(call, stream);
  else if (Fits<uint32_t>(call))
    LaunchGatherOf<uint32_t>(call, stream);
  else
    LaunchGatherOf<uint8_t>(call, stream);
  return cudaGetLastError();
}

}  // namespace penstock::cuda
