// SPDX-License-Identifier: Apache-2.0
// Bounds on the names, addresses and lists that peers send and the dispatcher keeps. docs/limits.md
// lists them. A text that is refused is counted in penstock_refused_total (too_long).
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "control/protocol/requests.h"
#include "control/protocol/worker_messages.h"

namespace penstock::control {

// The bound of a worker's address, of each of its tags, and of an offer's address and
// compatibility.
inline constexpr size_t kMaxWorkerTextBytes = 4096;
inline constexpr size_t kMaxProtocolBytes = 64;  // the name of a transport
inline constexpr size_t kMaxOffers = 64;         // transports of a worker
inline constexpr size_t kMaxTags = 256;          // of a worker
// Iterations of one job that are not closed. A program that leaves each epoch before its end opens
// many.
inline constexpr size_t kMaxOpenIterations = 1 << 16;

// InvalidArgument, with the field, its size and its bound, if something is too long.
absl::Status CheckLengths(const RegisterDatasetRequest& request);
absl::Status CheckLengths(const GetOrCreateJobRequest& request);
absl::Status CheckLengths(const WorkerHello& hello);

}  // namespace penstock::control
