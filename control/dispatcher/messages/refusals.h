// SPDX-License-Identifier: Apache-2.0
// Errors for refused clients. Each error names a remedy.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/messages.h"

namespace penstock::control {

absl::Status ToStatus(const protocol::Refused& refused);

// Returns the protocol version that the dispatcher and `who` use: the lower of the two highest.
// FailedPrecondition, with both ranges, if they share none.
absl::StatusOr<uint32_t> AgreeOnVersion(const VersionRange& theirs, std::string_view who);

// InvalidArgument unless `name_space` (empty: "default") is a valid namespace and `scoped`
// (scoped_name.h), if not empty, is in it.
absl::Status CheckScoped(std::string_view name_space, std::string_view scoped);

}  // namespace penstock::control
