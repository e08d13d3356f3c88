// SPDX-License-Identifier: Apache-2.0
// The order in which received elements are returned, in reads without a fixed order. The fixed
// order is in ordered_merge.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "dataplane/client/delivery/received_element.h"
#include "dataplane/transfer/fifo.h"
#include "penstock/distribute.h"
#include "penstock/ids.h"

namespace penstock::client {

// Queues received elements in one of two orders. any: the order in which they were received. fair:
// workers take turns, one element each. Both orders keep the elements of one worker in order. Not
// thread-safe.
class Merge {
 public:
  // REQUIRES: not order kDeterministic.
  explicit Merge(MergeOrder order) : fair_(order == MergeOrder::kFair) {}

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  void Push(ReceivedElement&& received);
  // REQUIRES: !empty().
  ReceivedElement Pop();
  // Takes out the elements of `partition`, except the `keeps` elements that would be returned
  // first.
  std::vector<ReceivedElement> GiveBack(PartitionId partition, size_t keeps);
  size_t CountOf(PartitionId partition) const;
  // Forgets a worker that no longer sends. Returns false while elements of that worker are kept
  // here; then call this again later.
  bool Forget(WorkerId worker);

 private:
  const bool fair_;
  size_t size_ = 0;
  std::map<WorkerId, transfer::Fifo<ReceivedElement>> queues_;  // any: one queue for all workers
  WorkerId last_;                                               // the worker of the last element
};

}  // namespace penstock::client
