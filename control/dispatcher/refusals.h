// SPDX-License-Identifier: Apache-2.0
// Why a client is refused, in words that help.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "control/protocol/messages.h"
#include "control/protocol/session_messages.h"

namespace penstock::control {

absl::Status ToStatus(const protocol::Refused& refused);

// FailedPrecondition unless `theirs` and this release's have a version of the protocol in common.
absl::Status CheckVersion(const VersionRange& theirs, std::string_view who);

// InvalidArgument unless `name_space` (empty: "default") is a possible name of one
// and `scoped` (scoped_name.h), where there is one, is of it.
absl::Status CheckScoped(std::string_view name_space, std::string_view scoped);

}  // namespace penstock::control
