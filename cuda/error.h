// SPDX-License-Identifier: Apache-2.0
// CUDA's errors as statuses. Private to this folder.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace penstock::cuda {

// OK for 0 (cudaSuccess). Otherwise what `call` says went wrong, in words, and the
// error that CUDA remembers for this thread is cleared. 34, 35 and 100 all mean
// that there is no GPU: NotFound.
absl::Status ToStatus(int error, std::string_view call);

// Why there is none: NotFound.
absl::Status NoGpu(int error);

}  // namespace penstock::cuda
