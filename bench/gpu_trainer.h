// SPDX-License-Identifier: Apache-2.0
// A trainer that gets its elements in a GPU's memory.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "bench/side.h"
#include "bench/workload.h"

namespace penstock::bench {

// Reads the case in this process into setup.device ("GPU:0"), 2 steps ahead. Elements are one
// uint8 tensor each, with a Source's stamps at both ends: these are copied back and compared, the
// bytes between them are not looked at. Among its lanes() is "GPUDirect on", or why it is not.
// Returns after the first elements. NotFound or FailedPrecondition where this process cannot use the GPU.
absl::StatusOr<std::unique_ptr<Side>> StartGpuTrainer(const Workload& workload, const Setup& setup);

}  // namespace penstock::bench
