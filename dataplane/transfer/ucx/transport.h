// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

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
// The same under that name, on what `ready` gives whenever it is used.
std::unique_ptr<Transport> MakeTransport(std::string name,
                                         std::function<absl::StatusOr<Ready>()> ready);

}  // namespace ucx

}  // namespace penstock::transfer
