// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet/growth.h"

#include <cmath>
#include <limits>

namespace penstock::bench {

double GrowthExponent(const std::vector<CostOfSize>& costs) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const CostOfSize& point : costs) {
    if (point.size <= 0 || point.cost <= 0) continue;
    const double log_size = std::log(point.size), log_cost = std::log(point.cost);
    n += 1;
    x += log_size;
    y += log_cost;
    xx += log_size * log_size;
    xy += log_size * log_cost;
  }
  const double spread = n * xx - x * x;
  if (n < 2 || spread < 1e-9) return std::numeric_limits<double>::quiet_NaN();
  return (n * xy - x * y) / spread;
}

}  // namespace penstock::bench
