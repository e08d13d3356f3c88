// SPDX-License-Identifier: Apache-2.0
// Our side of a pair: the whole product path in processes of its own.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/side.h"
#include "bench/workload.h"

namespace penstock::bench {

// Starts a side of that name: a dispatcher, workers and trainers as the setup says, for protocol
// "local" one process that is all of them. Returns when every trainer has read
// its first elements; the error of the first that cannot, in its own words.
absl::StatusOr<std::unique_ptr<Side>> StartService(const Setup& setup, std::string name);

}  // namespace penstock::bench
