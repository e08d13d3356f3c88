// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and other signals while C++ waits. Python runs signal handlers only on its main thread,
// and only when that thread checks for signals.
#pragma once

#include "absl/time/time.h"

namespace penstock::python {

// The longest delay until a signal is handled. A waiting reader wakes up at this interval.
inline constexpr absl::Duration kLookForSignals = absl::Milliseconds(50);

// Must be called when the module is initialized. REQUIRES: the GIL is held.
void LearnWhoHearsSignals();
// Returns whether the calling thread is Python's main thread; one load.
bool HearsSignals();
// Runs the handlers of signals that have arrived. Throws error_already_set with the exception that
// one of them raises, usually KeyboardInterrupt. REQUIRES: the GIL is held.
void HearSignals();

}  // namespace penstock::python
