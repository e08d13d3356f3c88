// SPDX-License-Identifier: Apache-2.0
// Processes that each keep a processor busy, like other users of a shared machine.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/side.h"

namespace penstock::bench {

// Runs `alone` while `neighbours` such processes are busy. They sleep outside Read(). Their CPU
// time counts for neither side. `alone` must outlive the result. Logs are in the folder `scratch`.
absl::StatusOr<std::unique_ptr<Side>> BesideNeighbours(Side& alone, int neighbours,
                                                       const std::string& scratch);

// The main function of such a process. After a line "work" on standard input it keeps a processor
// busy; after "rest" it sleeps. It echoes each line once it has obeyed it, and ends when its input
// ends.
void RunNeighbour();

}  // namespace penstock::bench
