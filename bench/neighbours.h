// SPDX-License-Identifier: Apache-2.0
// Processes that keep a processor busy each, as others do on a machine that is not ours alone.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/side.h"

namespace penstock::bench {

// `alone` while so many neighbours work; they rest outside Read(). What they use is nobody's.
// `alone` outlives it. Logs go to the folder `scratch`.
absl::StatusOr<std::unique_ptr<Side>> BesideNeighbours(Side& alone, int neighbours,
                                                       const std::string& scratch);

// Such a process: a line "work" on standard input and it keeps a processor busy, "rest" and it
// sleeps; it says each line again when it does so, and ends with its input.
void RunNeighbour();

}  // namespace penstock::bench
