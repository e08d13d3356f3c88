// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "penstock/ids.h"

namespace penstock::control {

// Returns a random number of this process, constant while it lives; a forked child has its own.
// Clients and workers that report the same number are in one process.
Incarnation ThisProcess();

}  // namespace penstock::control
