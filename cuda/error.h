// SPDX-License-Identifier: Apache-2.0
// CUDA's errors as statuses. Private to this folder.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace penstock::cuda {

// Returns OK if `error` is 0 (cudaSuccess), else a status with the name `call` and CUDA's reason.
// Clears the error that CUDA remembers for this thread. The errors 34, 35 and 100 all mean that
// there is no GPU, and become NotFound.
absl::Status ToStatus(int error, std::string_view call);

// Returns NotFound with the reason for the lack of a GPU.
absl::Status NoGpu(int error);

}  // namespace penstock::cuda
