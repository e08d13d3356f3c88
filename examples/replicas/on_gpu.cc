// SPDX-License-Identifier: Apache-2.0
#include "on_gpu.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels.h"
#include "penstock/status.h"

namespace {

using lenet::LeNet;

constexpr size_t kSums = LeNet::kWeights + 2;

absl::Status ToStatus(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(call, ": ", cudaGetErrorString(error)));
}

// An array of this many values on the current device.
template <class T>
absl::Status Allocate(size_t values, T*& to) {
  void* address = nullptr;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaMalloc(&address, values * sizeof(T)), "cudaMalloc"));
  to = static_cast<T*>(address);
  return absl::OkStatus();
}

// A CUDA stream of one GPU, and the memory that learning needs there. Lives as long as the process,
// because replicas need it at every step.
class Gpu {
 public:
  static absl::StatusOr<Gpu*> Of(int device) {
    static std::mutex mu;
    static std::vector<std::unique_ptr<Gpu>>& gpus = *new std::vector<std::unique_ptr<Gpu>>;
    std::lock_guard lock(mu);
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaSetDevice(device), "cudaSetDevice"));
    const auto at = static_cast<size_t>(device);
    gpus.resize(std::max(gpus.size(), at + 1));
    if (gpus[at] == nullptr) {
      auto made = std::make_unique<Gpu>();
      PENSTOCK_RETURN_IF_ERROR(made->Open());
      gpus[at] = std::move(made);
    }
    return gpus[at].get();
  }

  absl::StatusOr<std::vector<double>> Learn(const LeNet& model,
                                            const penstock::DeviceElement& batch) {
    const int64_t rows = batch["label"].dim(0);
    PENSTOCK_RETURN_IF_ERROR(MakeRoom(rows));
    PENSTOCK_RETURN_IF_ERROR(
        ToStatus(cudaMemcpyAsync(weights_, model.weights().data(), LeNet::kWeights * sizeof(float),
                                 cudaMemcpyHostToDevice, stream_),
                 "cudaMemcpyAsync"));
    PENSTOCK_RETURN_IF_ERROR(batch.ReadyOn(stream_));
    PENSTOCK_RETURN_IF_ERROR(
        ToStatus(LearnRows(weights_, static_cast<const float*>(batch["image"].raw()),
                           static_cast<const int64_t*>(batch["label"].raw()),
                           static_cast<int>(rows), of_rows_, sums_, stream_),
                 "learning"));
    PENSTOCK_RETURN_IF_ERROR(batch.ReadBy(stream_));
    std::vector<double> sums(kSums);
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaMemcpyAsync(sums.data(), sums_, kSums * sizeof(double),
                                                      cudaMemcpyDeviceToHost, stream_),
                                      "cudaMemcpyAsync"));
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaStreamSynchronize(stream_), "learning"));
    return sums;
  }

 private:
  absl::Status Open() {
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                                      "cudaStreamCreateWithFlags"));
    PENSTOCK_RETURN_IF_ERROR(Allocate(LeNet::kWeights, weights_));
    return Allocate(kSums, sums_);
  }
  absl::Status MakeRoom(int64_t rows) {
    if (rows <= room_) return absl::OkStatus();
    if (of_rows_ != nullptr) PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaFree(of_rows_), "cudaFree"));
    of_rows_ = nullptr;
    room_ = 0;
    PENSTOCK_RETURN_IF_ERROR(Allocate(static_cast<size_t>(rows) * kSums, of_rows_));
    room_ = rows;
    return absl::OkStatus();
  }

  cudaStream_t stream_ = nullptr;
  float* weights_ = nullptr;
  double* sums_ = nullptr;
  double* of_rows_ = nullptr;
  int64_t room_ = 0;  // rows
};

}  // namespace

absl::StatusOr<std::vector<double>> LearnOnGpu(const LeNet& model,
                                               const penstock::DeviceElement& batch) {
  PENSTOCK_ASSIGN_OR_RETURN(Gpu* const gpu, Gpu::Of(batch.device()));
  return gpu->Learn(model, batch);
}
