// SPDX-License-Identifier: Apache-2.0
// The status page of a dispatcher, for browsers.
#pragma once

#include <string>

#include "control/protocol/dispatcher_status.h"

namespace penstock::control {

// Returns the query for the page, which shows the first hundred rows of each table.
StatusQuery StatusPageQuery();
// Below a table that does not show all rows, the page names the command that does.
std::string StatusPage(const DispatcherStatus& status);

}  // namespace penstock::control
