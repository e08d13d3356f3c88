// SPDX-License-Identifier: Apache-2.0
// What a trainer's process counts of its reading (control/observe/metrics.h).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace penstock::client {

// A session holds so many elements that have landed and were not taken; the most of
// any session so far is shown.
void NoteHeld(int64_t elements);
// A link over that protocol broke, or could not be opened.
void CountLinkError(const std::string& protocol, const absl::Status& error);

}  // namespace penstock::client
