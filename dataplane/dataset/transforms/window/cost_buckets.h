// SPDX-License-Identifier: Apache-2.0
// Groups costs into buckets. The largest cost of a bucket is at most (1 + spread) times the
// smallest.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace penstock {

// Equal costs have equal buckets on every machine, because buckets are computed with
// multiplications only. Logarithms could differ in their last bit.
class CostBuckets {
 public:
  static constexpr double kLeastSpread = 0.001;

  // REQUIRES: kLeastSpread <= spread <= 1.
  explicit CostBuckets(double spread) {
    for (double begin = 0.5; begin < 1; begin *= 1 + spread) begins_.push_back(begin);
  }

  int64_t per_doubling() const { return static_cast<int64_t>(begins_.size()); }

  // The bucket of `cost`. It increases with the cost; 0 has its own bucket. REQUIRES: finite, >= 0.
  int64_t Of(double cost) const {
    if (cost == 0) return INT32_MIN;
    int exponent = 0;
    const double mantissa = std::frexp(cost, &exponent);  // in [0.5, 1)
    const auto behind = std::upper_bound(begins_.begin(), begins_.end(), mantissa);
    return exponent * per_doubling() + (behind - begins_.begin() - 1);
  }

 private:
  std::vector<double> begins_;  // of the buckets in [0.5, 1)
};

}  // namespace penstock
