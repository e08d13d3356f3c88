// SPDX-License-Identifier: Apache-2.0
// The number and the release of this process, which its hellos name.
#pragma once

#include "penstock/ids.h"

namespace penstock::control {

// Returns a random number that identifies this process and stays constant while the process lives.
// A forked child has a number of its own. Clients and workers that report the same number are in
// the same process.
Incarnation ThisProcess();

// Returns the release of this program, "0.9.0", which hellos carry.
const char* ThisRelease();

}  // namespace penstock::control
