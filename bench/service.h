// SPDX-License-Identifier: Apache-2.0
// Our side of a pair: the whole product path in separate processes.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/side.h"
#include "bench/workload.h"

namespace penstock::bench {

// Starts a side called `name`: a dispatcher, workers and trainers as in the setup. For protocol
// "local" one process is all of them. Returns when every trainer has read its first elements; the
// first trainer's own error if one cannot.
absl::StatusOr<std::unique_ptr<Side>> StartService(const Setup& setup, std::string name);

}  // namespace penstock::bench
