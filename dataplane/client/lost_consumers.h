// SPDX-License-Identifier: Apache-2.0
// Where sessions say what penstock/lost_consumers.h tells.
#pragma once

#include "penstock/lost_consumers.h"

namespace penstock::client {

// To all watches of this process. Any thread; waits for nobody.
void NotifyLostConsumer(const LostConsumer& change);

}  // namespace penstock::client
