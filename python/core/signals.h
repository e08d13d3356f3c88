// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and other signals while C++ waits: Python runs their handlers on its main
// thread alone, and only when that asks for them.
#pragma once

#include "absl/time/time.h"

namespace penstock::python {

// How soon a signal is heard. A reader that waits wakes as often.
inline constexpr absl::Duration kLookForSignals = absl::Milliseconds(50);

// When the module is made. REQUIRES: the GIL is held.
void LearnWhoHearsSignals();
// Whether the calling thread is Python's main thread; a load.
bool HearsSignals();
// Runs the handlers of signals that came. Throws error_already_set with what one of
// them raises: KeyboardInterrupt, as a rule. REQUIRES: the GIL is held.
void HearSignals();

}  // namespace penstock::python
