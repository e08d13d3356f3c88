// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and other signals while C++ waits. Python runs their handlers only on its main thread, and
// only when that thread asks for them.
#pragma once

#include "absl/time/time.h"

namespace penstock::python {

// The longest delay until a signal is handled. A waiting reader wakes up as often.
inline constexpr absl::Duration kLookForSignals = absl::Milliseconds(50);

// Call it when the module is made. REQUIRES: the GIL is held.
void LearnWhoHearsSignals();
// Returns whether the calling thread is Python's main thread; one load.
bool HearsSignals();
// Runs the handlers of signals that have arrived. Throws error_already_set with the exception that
// one of them raises, usually KeyboardInterrupt. REQUIRES: the GIL is held.
void HearSignals();

}  // namespace penstock::python
