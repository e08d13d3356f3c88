// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace penstock::transfer {

// The minimum time, in every protocol, for which a partly filled frame waits for more elements. The
// frame is sent earlier if it fills up, or if something else must be sent after it.
inline constexpr std::chrono::milliseconds kFrameFlushDelay(1);

}  // namespace penstock::transfer
