// SPDX-License-Identifier: Apache-2.0
// Passes changes that sessions notice to the watches of penstock/lost_consumers.h.
#pragma once

#include "penstock/lost_consumers.h"

namespace penstock::client {

// Adds `change` to all watches of this process. Does not wait; any thread may call it.
void NotifyLostConsumer(const LostConsumer& change);

}  // namespace penstock::client
