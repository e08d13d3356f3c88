// SPDX-License-Identifier: Apache-2.0
// The status page of a dispatcher, for browsers.
#pragma once

#include <string>

#include "control/protocol/dispatcher_status.h"

namespace penstock::control {

std::string StatusPage(const DispatcherStatus& status);

}  // namespace penstock::control
