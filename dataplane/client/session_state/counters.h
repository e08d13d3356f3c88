// SPDX-License-Identifier: Apache-2.0
// Metrics about reading, in a trainer's process (control/observe/metrics.h).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace penstock::client {

// Notes that a session holds `elements` received elements that are not delivered yet. The gauge
// shows the maximum over all sessions so far.
void NoteHeld(int64_t elements);
// Sets the number of the other consumers of a coordinated read that the dispatcher no longer hears
// from.
void NoteLostConsumers(const std::string& job, int64_t consumers);
// Counts a link over `protocol` that broke or could not be opened.
void CountLinkError(const std::string& protocol, const absl::Status& error);

}  // namespace penstock::client
