// SPDX-License-Identifier: Apache-2.0
// A trainer that gets its elements in GPU memory.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "bench/side.h"
#include "bench/workload.h"

namespace penstock::bench {

// Reads the case in this process into setup.device ("GPU:0"), 2 steps ahead. Each element is one
// uint8 tensor with a Source's stamps at both ends. Only the stamps are copied back and compared.
// lanes() contains "GPUDirect on", or why it is off. Returns after the first elements. NotFound or
// FailedPrecondition if this process cannot use the GPU.
absl::StatusOr<std::unique_ptr<Side>> StartGpuTrainer(const Workload& workload, const Setup& setup);

}  // namespace penstock::bench
