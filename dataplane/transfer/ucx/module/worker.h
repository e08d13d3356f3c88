// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucp/api/ucp.h>

#include <memory>

#include "absl/status/statusor.h"
#include "dataplane/transfer/ucx/fabric.h"

namespace penstock::transfer::ucx {

inline ucs_memory_type_t ToUcx(MemoryType type) {
  return type == MemoryType::kCuda ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
}

// `context` and `events` must outlive the worker.
absl::StatusOr<std::unique_ptr<Worker>> MakeUcxWorker(ucp_context_h context,
                                                      Worker::Events& events);

}  // namespace penstock::transfer::ucx
