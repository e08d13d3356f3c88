// SPDX-License-Identifier: Apache-2.0
// What a trainer's process counts of its reading (control/observe/metrics.h).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace penstock::client {

// A session holds so many elements that were received and not delivered; the most of
// any session so far is shown.
void NoteHeld(int64_t elements);
// Of the other consumers of a coordinated read so many are not heard by the dispatcher.
void NoteLostConsumers(const std::string& job, int64_t consumers);
// A link over that protocol broke, or could not be opened.
void CountLinkError(const std::string& protocol, const absl::Status& error);

}  // namespace penstock::client
