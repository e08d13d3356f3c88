// SPDX-License-Identifier: Apache-2.0
// Limits how far ahead of the delivered elements each partition of an ordered merge may send.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "penstock/ids.h"

namespace penstock::client {

// Divides a window among the partitions. Each partition has a budget of its own, so that no
// partition waits for elements of another one. Not thread-safe.
class ReceiveLimits {
 public:
  // `max_elements` 0: the number of elements that fill 8 MiB, but at least 16 and at most 16,384.
  ReceiveLimits(int64_t max_elements, int64_t max_bytes)
      : max_elements_(max_elements), max_bytes_(max_bytes) {}

  // `shares` partitions have elements for this reader, one in every `stride` indices. Only
  // the first call counts.
  void Open(size_t partitions, int64_t shares, int64_t stride) {
    advertised_.resize(std::max(advertised_.size(), partitions), 0);
    shares_ = shares;
    stride_ = stride;
  }
  void OnReceived(int64_t bytes);
  // Sets a second bound in bytes, in addition to max_bytes; 0: no second bound.
  void BoundBytes(int64_t bytes) { bound_bytes_ = bytes; }
  // Forgets the advertised limits, because the messages that contained them may be lost.
  void Forget() { std::fill(advertised_.begin(), advertised_.end(), 0); }

  // Returns the index below which `partition` may send, and counts this index as advertised;
  // nullopt if the change is too small to send. `delivered`: the first index of this reader that is
  // not delivered.
  std::optional<Index> TakeUpdate(PartitionId partition, Index delivered);

  // Returns the budget of one partition, counted in elements for this reader; at least 1.
  int64_t partition_budget() const;

 private:
  const int64_t max_elements_;
  const int64_t max_bytes_;
  int64_t bound_bytes_ = 0;
  int64_t mean_bytes_ = 0;  // running mean over elements
  int64_t shares_ = 1;
  int64_t stride_ = 1;
  std::vector<Index> advertised_;  // [0] is partition 1
};

}  // namespace penstock::client
