// SPDX-License-Identifier: Apache-2.0
// One thread per image computes its sums, by the code that the CPU runs. Then one thread per sum
// adds up the values of all images, in the order of the images, so that the sums are the same every
// time.
#include "kernels.h"
#include "lenet.h"

namespace {

using lenet::Network;

constexpr int kSums = Network::kWeights + 2;
constexpr int kThreads = 128;

__global__ void LearnImages(const float* weights, const float* images, const int64_t* labels,
                            int rows, double* of_rows) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= rows) return;
  double* const own = of_rows + static_cast<int64_t>(row) * kSums;
  for (int i = 0; i < kSums; ++i) own[i] = 0;
  own[Network::kWeights] =
      Network(weights).Learn(images + row * lenet::kPixels, labels[row], 1, own);
  own[Network::kWeights + 1] = 1;
}

__global__ void AddRows(const double* of_rows, int rows, double* sums) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= kSums) return;
  double sum = 0;
  for (int row = 0; row < rows; ++row) sum += of_rows[static_cast<int64_t>(row) * kSums + i];
  sums[i] = sum;
}

}  // namespace

cudaError_t LearnRows(const float* weights, const float* images, const int64_t* labels, int rows,
                      double* of_rows, double* sums, cudaStream_t stream) {
  if (rows > 0) {
    LearnImages<<<(rows + kThreads - 1) / kThreads, kThreads, 0, stream>>>(weights, images, labels,
                                                                           rows, of_rows);
  }
  AddRows<<<(kSums + kThreads - 1) / kThreads, kThreads, 0, stream>>>(of_rows, rows, sums);
  return cudaGetLastError();
}
