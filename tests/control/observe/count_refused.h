// SPDX-License-Identifier: Apache-2.0
// How often a port of this process has refused something (control/observe/refused.h).
#pragma once

#include <cstdint>
#include <string>

#include "control/observe/metrics.h"

namespace penstock {

// Returns penstock_refused_total of that port and reason.
inline int64_t RefusedSoFar(const std::string& port, const std::string& reason) {
  return ProcessMetrics()
      .GetCounter("penstock_refused_total", "", {{"port", port}, {"reason", reason}})
      .value();
}

}  // namespace penstock
