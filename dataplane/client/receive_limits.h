// SPDX-License-Identifier: Apache-2.0
// How far each partition of an ordered merge may send ahead of what was delivered.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "penstock/ids.h"

namespace penstock::client {

// Divides a window between the partitions: each has a budget of its own, so that none
// waits for what another holds. Not thread-safe.
class ReceiveLimits {
 public:
  // `max_elements` 0: as many as make 8 MiB, from 16 to 16,384.
  ReceiveLimits(int64_t max_elements, int64_t max_bytes)
      : max_elements_(max_elements), max_bytes_(max_bytes) {}

  // `shares` of the partitions have elements for this reader, one of `stride` indices each. The
  // first call counts.
  void Open(size_t partitions, int64_t shares, int64_t stride) {
    advertised_.resize(std::max(advertised_.size(), partitions), 0);
    shares_ = shares;
    stride_ = stride;
  }
  void OnReceived(int64_t bytes);
  // A bound of bytes beside max_bytes, from now on; 0: none.
  void BoundBytes(int64_t bytes) { bound_bytes_ = bytes; }
  // What was advertised may be lost.
  void Forget() { std::fill(advertised_.begin(), advertised_.end(), 0); }

  // Below which index `partition` may send, now that `delivered` is the first of this reader's that
  // is not delivered, if that is news worth telling; counts as advertised.
  std::optional<Index> TakeUpdate(PartitionId partition, Index delivered);

  // Elements of one partition for this reader; at least 1.
  int64_t partition_budget() const;

 private:
  const int64_t max_elements_;
  const int64_t max_bytes_;
  int64_t bound_bytes_ = 0;
  int64_t mean_bytes_ = 0;  // of an element, lately
  int64_t shares_ = 1;
  int64_t stride_ = 1;
  std::vector<Index> advertised_;  // [0] is partition 1
};

}  // namespace penstock::client
