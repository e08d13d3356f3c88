// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace penstock::transfer {

// The minimum time that a partly filled frame waits for more elements, in every protocol. A frame
// is sent earlier if it is full, or if something else is sent after it.
inline constexpr std::chrono::milliseconds kFrameFlushDelay(1);

}  // namespace penstock::transfer
