// SPDX-License-Identifier: Apache-2.0
// The trainer of a case, a process of its own: it reads as it is told.
#pragma once

namespace penstock::bench {

// Speaks bench/wire.h over standard input and output until the input ends.
// Returns the exit code.
int RunTrainer();

}  // namespace penstock::bench
