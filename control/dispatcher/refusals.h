// SPDX-License-Identifier: Apache-2.0
// Why a client is refused, in words that help.
#pragma once

#include "absl/status/status.h"
#include "control/protocol/messages.h"

namespace penstock::control {

absl::Status ToStatus(const protocol::Refused& refused);

}  // namespace penstock::control
