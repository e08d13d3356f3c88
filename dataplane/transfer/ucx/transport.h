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
// Opens UCX now, in a process that names these protocols and can use `ucx`; says no error, since
// the first use of `ucx` says it. For the time before a process begins threads: UCX writes jumps
// over mmap, munmap and their like while it opens, releases before 1.16 in two steps, and a thread
// that calls one of them in between jumps anywhere (docs/gpu_gotchas.md).
void OpenEarly(std::string_view protocol, const std::vector<std::string>& fallback);

// The same under that name, on what `ready` gives whenever it is used.
std::unique_ptr<Transport> MakeTransport(std::string name,
                                         std::function<absl::StatusOr<Ready>()> ready);

}  // namespace ucx

}  // namespace penstock::transfer
