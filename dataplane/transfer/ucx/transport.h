// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/transfer/ucx/memory.h"
#include "dataplane/transfer/ucx/settings.h"

namespace penstock::transfer {

// "ucx": moves elements over RDMA with UCX, which is opened when it is first used (README.md).
std::unique_ptr<Transport> MakeUcxTransport();

namespace ucx {

// The resources of a process that can use UCX, and the settings for it.
struct Ready {
  Settings settings;
  Resources* resources;
};
// Opens UCX now, if this process can use it. Errors are dropped, because the first use reports
// them. Call this before the process starts threads: while UCX is being opened, it overwrites the
// beginning of mmap, munmap and similar functions with jumps; releases before 1.16 do so in two
// steps. A thread that calls one of these functions between the two steps jumps to an arbitrary
// address (docs/gpu_gotchas.md).
void OpenEarly();
// Returns true if `ucx` is among the named protocols.
bool IsNamed(std::string_view protocol, const std::vector<std::string>& fallback);

// Makes the transport, called `name`. `ready` is called at each use and returns the resources.
std::unique_ptr<Transport> MakeTransport(std::string name,
                                         std::function<absl::StatusOr<Ready>()> ready);

}  // namespace ucx

}  // namespace penstock::transfer
