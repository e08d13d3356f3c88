// SPDX-License-Identifier: Apache-2.0
// Counts times in buckets, so that those of several threads and processes can be added.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace penstock::bench {

// The bucket i ends at 2^(i/8) µs: a quantile is at most 9 % too high. Times above a minute are in
// the last bucket.
inline constexpr size_t kLatencyBuckets = 8 * 26;

// Any thread may call any method.
class Latencies {
 public:
  void Add(absl::Duration time);
  // Returns the counts since the last call, by bucket.
  std::vector<int64_t> Take();

 private:
  std::array<std::atomic<int64_t>, kLatencyBuckets> counts_ = {};
};

// Returns the end of the bucket with the quantile `q`, in ms; NaN if all counts are 0.
double QuantileMs(const std::vector<int64_t>& counts, double q);

}  // namespace penstock::bench
