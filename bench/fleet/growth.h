// SPDX-License-Identifier: Apache-2.0
// How a cost grows with the size of a fleet.
#pragma once

#include <vector>

namespace penstock::bench {

struct CostOfSize {
  double size = 0;  // workers
  double cost = 0;  // in any unit
};

// Returns the exponent e of cost ≈ c · size^e, by least squares of the logarithms: 1 is linear.
// Points with a cost or size of 0 or less are left out; NaN if fewer than two sizes remain.
double GrowthExponent(const std::vector<CostOfSize>& costs);

}  // namespace penstock::bench
