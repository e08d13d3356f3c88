// SPDX-License-Identifier: Apache-2.0
// Metrics of a trainer's process about its reading (control/observe/metrics.h).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace penstock::client {

// Notes that a session holds `elements` received elements that are not delivered yet. The gauge
// shows the maximum of all sessions so far.
void NoteHeld(int64_t elements);
// Sets how many of the other consumers of a coordinated read the dispatcher no longer hears from.
void NoteLostConsumers(const std::string& job, int64_t consumers);
// Counts a link over `protocol` that broke or could not be opened.
void CountLinkError(const std::string& protocol, const absl::Status& error);

}  // namespace penstock::client
