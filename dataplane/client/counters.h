// SPDX-License-Identifier: Apache-2.0
// What a trainer's process counts of its reading (control/observe/metrics.h).
#pragma once

#include <cstdint>

namespace penstock::client {

// A session holds so many elements that have landed and were not taken; the most of
// any session so far is shown.
void NoteHeld(int64_t elements);

}  // namespace penstock::client
