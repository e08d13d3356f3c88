// SPDX-License-Identifier: Apache-2.0
#include "cuda/error.h"

#include <cuda_runtime_api.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace penstock::cuda {
namespace {

std::string Version(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::StatusCode CodeOf(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::StatusCode::kResourceExhausted;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorHostMemoryNotRegistered:
      return absl::StatusCode::kInvalidArgument;
    case cudaErrorHostMemoryAlreadyRegistered:
      return absl::StatusCode::kAlreadyExists;
    case cudaErrorNotSupported:
      return absl::StatusCode::kUnimplemented;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status NoGpu(int error) {
  if (error == cudaErrorStubLibrary) {
    return absl::NotFoundError(
        "no GPU: libcuda.so.1 is the toolkit's stub, not a driver; install NVIDIA's driver, and "
        "keep the toolkit's stubs folder out of LD_LIBRARY_PATH");
  }
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess) (void)cudaGetLastError();
    return absl::NotFoundError(
        driver == 0
            ? std::string("no GPU: no NVIDIA driver is installed (libcuda.so.1 was not found)")
            : absl::StrCat("no GPU: the driver supports CUDA ", Version(driver),
                           ", but this build needs CUDA ", Version(CUDART_VERSION),
                           "; install a newer driver"));
  }
  return absl::NotFoundError(
      "no GPU: the driver shows no device to this process; check nvidia-smi and "
      "CUDA_VISIBLE_DEVICES");
}

absl::Status ToStatus(int code, std::string_view call) {
  const auto error = static_cast<cudaError_t>(code);
  if (error == cudaSuccess) return absl::OkStatus();
  (void)cudaGetLastError();
  if (error == cudaErrorStubLibrary || error == cudaErrorInsufficientDriver ||
      error == cudaErrorNoDevice) {
    return NoGpu(error);
  }
  return absl::Status(CodeOf(error),
                      absl::StrCat(std::string(call), ": ", cudaGetErrorString(error), " (",
                                   cudaGetErrorName(error), ")"));
}

}  // namespace penstock::cuda
