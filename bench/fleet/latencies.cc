// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet/latencies.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace penstock::bench {
namespace {

constexpr double kBucketsPerDoubling = 8;

}  // namespace

void Latencies::Add(absl::Duration time) {
  const double us = std::max(1.0, absl::ToDoubleMicroseconds(time));
  const auto bucket = static_cast<size_t>(std::ceil(kBucketsPerDoubling * std::log2(us)));
  ++counts_[std::min(bucket, kLatencyBuckets - 1)];
}

std::vector<int64_t> Latencies::Take() {
  std::vector<int64_t> taken;
  taken.reserve(kLatencyBuckets);
  for (std::atomic<int64_t>& count : counts_) taken.push_back(count.exchange(0));
  return taken;
}

double QuantileMs(const std::vector<int64_t>& counts, double q) {
  const auto all = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  if (all == 0) return std::numeric_limits<double>::quiet_NaN();
  const double wanted = std::max(1.0, q * static_cast<double>(all));
  int64_t below = 0;
  size_t bucket = 0;
  while (bucket + 1 < counts.size()) {
    below += counts[bucket];
    if (static_cast<double>(below) >= wanted) break;
    ++bucket;
  }
  return std::exp2(static_cast<double>(bucket) / kBucketsPerDoubling) / 1e3;
}

}  // namespace penstock::bench
