// SPDX-License-Identifier: Apache-2.0
// Stubs for services whose address begins with another scheme than grpc, such as "sim://host:port".
// The product registers none; the simulator (tools/simulator) registers its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::control {

class DispatcherStub;

// Makes a stub for the addresses of a service, "host:port" each.
using MakeStub = std::function<absl::StatusOr<std::unique_ptr<DispatcherStub>>(
    std::vector<std::string> addresses)>;

// From now on, DispatcherStub::Make() calls `make` for services of this scheme, and uses no TLS;
// nullptr: the scheme is unknown again. `scheme`: the text before "://"; not grpc or grpcs. Any
// thread.
void RegisterScheme(const std::string& scheme, MakeStub make);

// Returns what was registered; nullptr: nothing. Any thread.
MakeStub FindScheme(const std::string& scheme);

}  // namespace penstock::control
