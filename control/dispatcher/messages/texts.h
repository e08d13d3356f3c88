// SPDX-License-Identifier: Apache-2.0
// Checks of the names, addresses and lists that peers send and the dispatcher keeps. docs/limits.md
// lists the bounds. A text that is too long is counted in penstock_refused_total (too_long). Texts
// need not be UTF-8. Control characters are refused, since texts go to terminals.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/requests.h"
#include "control/protocol/worker_messages.h"

namespace penstock::control {

// The bound of a worker's address, of each of its tags, and of an offer's address and
// compatibility.
inline constexpr size_t kMaxWorkerTextBytes = 4096;
inline constexpr size_t kMaxProtocolBytes = 64;  // the name of a transport
inline constexpr size_t kMaxReleaseBytes = 64;   // the release of a worker or client
inline constexpr size_t kMaxOffers = 64;         // transports of a worker
inline constexpr size_t kMaxTags = 256;          // of a worker
// Iterations of one job that are not closed. A program that leaves each epoch before its end opens
// many.
inline constexpr size_t kMaxOpenIterations = 1 << 16;

// InvalidArgument, with the field, if something is too long or has control characters.
absl::Status CheckTexts(const RegisterDatasetRequest& request);
absl::Status CheckTexts(const GetOrCreateJobRequest& request);
absl::Status CheckTexts(const WorkerHello& hello);
absl::Status CheckTexts(const ClientHello& hello);

}  // namespace penstock::control
