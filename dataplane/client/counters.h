// SPDX-License-Identifier: Apache-2.0
// Metrics of a trainer's process about its reading (control/observe/metrics.h).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace penstock::client {

// Notes that a session holds `elements` elements that were received and not delivered. The gauge
// shows the maximum of all sessions so far.
void NoteHeld(int64_t elements);
// Sets how many of the other consumers of a coordinated read the dispatcher does not hear.
void NoteLostConsumers(const std::string& job, int64_t consumers);
// Counts a link over `protocol` that broke or could not be opened.
void CountLinkError(const std::string& protocol, const absl::Status& error);

}  // namespace penstock::client
