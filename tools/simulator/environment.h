// SPDX-License-Identifier: Apache-2.0
// The environment of a program that runs simulations.
#pragma once

namespace penstock::simulator {

// Removes the variables that the product reads, so that a run does not depend on the user who
// starts it: PENSTOCK_* (control/settings, control/observe), those of launchers
// (control/env/launchers.h and replica_group.cc), and UCX_*. PENSTOCK_EVENTS stays; if it is not
// set, no events are printed. Call it before the process has a second thread.
void ForgetEnvironment();

}  // namespace penstock::simulator
