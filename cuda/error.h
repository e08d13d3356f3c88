// SPDX-License-Identifier: Apache-2.0
// CUDA's errors as statuses. Private to this folder.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace penstock::cuda {

// Returns OK for 0 (cudaSuccess), else the error of `call` with CUDA's reason, and clears the error
// that CUDA remembers for this thread. 34, 35 and 100 all mean that there is no GPU: NotFound.
absl::Status ToStatus(int error, std::string_view call);

// Returns NotFound with the reason why there is no GPU.
absl::Status NoGpu(int error);

}  // namespace penstock::cuda
