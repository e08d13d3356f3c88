// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "penstock/ids.h"

namespace penstock::control {

// Returns a random number that identifies this process and stays constant while the process lives.
// A forked child has a number of its own. Clients and workers that report the same number are in
// the same process.
Incarnation ThisProcess();

}  // namespace penstock::control
