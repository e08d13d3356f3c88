// SPDX-License-Identifier: Apache-2.0
// The page that a dispatcher shows in a browser.
#pragma once

#include <string>

#include "control/protocol/dispatcher_status.h"

namespace penstock::control {

std::string StatusPage(const DispatcherStatus& status);

}  // namespace penstock::control
