// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "penstock/ids.h"

namespace penstock::control {

// A random number of this process, the same as long as it lives; a forked child
// has its own. Clients and workers that say the same one are in one process.
Incarnation ThisProcess();

}  // namespace penstock::control
