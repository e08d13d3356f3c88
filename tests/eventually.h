// SPDX-License-Identifier: Apache-2.0
// Waits for what another thread or process does.
#pragma once

#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace penstock {

// Whether `condition` becomes true within `bound`, which only a broken program reaches. It is
// called again and again on this thread; others run in between.
template <class Condition>
[[nodiscard]] bool Eventually(Condition condition, absl::Duration bound = absl::Minutes(1)) {
  const absl::Time end = absl::Now() + bound;
  while (!condition()) {
    if (absl::Now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace penstock
