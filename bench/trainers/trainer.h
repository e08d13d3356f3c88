// SPDX-License-Identifier: Apache-2.0
// The trainer of a case, a separate process that reads on request.
#pragma once

#include "bench/workload.h"
#include "penstock/dataset.h"

namespace penstock::bench {

// Returns the dataset that a trainer of the case reads. REQUIRES: setup.service names a dispatcher.
Dataset Distributed(const Workload& workload, const Setup& setup);

// Speaks bench/wire.h over standard input and output until the input ends.
// Returns the exit code.
int RunTrainer();

}  // namespace penstock::bench
