// SPDX-License-Identifier: Apache-2.0
// The trainer of a case, a process of its own: it reads as it is told.
#pragma once

#include "bench/workload.h"
#include "penstock/dataset.h"

namespace penstock::bench {

// What a trainer of the case reads. setup.service names a dispatcher.
Dataset Distributed(const Workload& workload, const Setup& setup);

// Speaks bench/wire.h over standard input and output until the input ends.
// Returns the exit code.
int RunTrainer();

}  // namespace penstock::bench
