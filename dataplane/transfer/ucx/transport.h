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

// "ucx": over RDMA, by UCX, which is opened when it is first used. How: README.md.
std::unique_ptr<Transport> MakeUcxTransport();

namespace ucx {

// What a process can do, and the settings it does it with.
struct Ready {
  Settings settings;
  Resources* resources;
};
// Opens UCX now, if this process can use it. Errors are dropped: the first use reports them. To be
// called before a process begins threads: UCX writes jumps over mmap, munmap and their like while
// it opens, releases before 1.16 in two steps, and a thread that calls one of them in between jumps
// anywhere (docs/gpu_gotchas.md).
void OpenEarly();
// Whether `ucx` is among those that are named.
bool IsNamed(std::string_view protocol, const std::vector<std::string>& fallback);

// The same under that name, on what `ready` gives whenever it is used.
std::unique_ptr<Transport> MakeTransport(std::string name,
                                         std::function<absl::StatusOr<Ready>()> ready);

}  // namespace ucx

}  // namespace penstock::transfer
