// SPDX-License-Identifier: Apache-2.0
// A dispatch server that breaks a rule of the protocol on purpose, for the test that checks that
// the count of elements detects the fault.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "control/protocol/rules.h"
#include "penstock/server.h"

namespace penstock::control {

// DispatchServer::Start() calls this with Broken::kNone.
absl::StatusOr<std::unique_ptr<DispatchServer>> StartDispatchServer(DispatcherConfig config,
                                                                    protocol::Broken broken);

}  // namespace penstock::control
