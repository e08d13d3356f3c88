// SPDX-License-Identifier: Apache-2.0
// The order in which received elements are returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "dataplane/client/ordered_merge.h"
#include "dataplane/client/received_element.h"
#include "dataplane/transfer/fifo.h"
#include "penstock/distribute.h"
#include "penstock/ids.h"

namespace penstock::client {

// Queues received elements in one of three orders. any: as they were received. fair: one of each
// worker in turn, while there are any. Elements of one worker stay in their order. deterministic:
// ordered_merge.h. Not thread-safe.
class Merge {
 public:
  explicit Merge(MergeOrder order) : order_(order) {}

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  void Push(ReceivedElement received);
  // Returns true if an element can be returned now.
  bool ready() const { return order_ == MergeOrder::kDeterministic ? ordered_.ready() : !empty(); }
  // REQUIRES: ready().
  ReceivedElement Pop();
  // Takes out the elements of `partition`, except the first `keeps` that would be returned.
  // REQUIRES: not order kDeterministic.
  std::vector<ReceivedElement> GiveBack(PartitionId partition, size_t keeps);
  size_t CountOf(PartitionId partition) const;
  // Forgets a worker that sends no more. False while elements of that worker are here: ask again.
  bool Forget(WorkerId worker);
  // For order kDeterministic.
  OrderedMerge& ordered() { return ordered_; }
  const OrderedMerge& ordered() const { return ordered_; }

 private:
  const MergeOrder order_;
  size_t size_ = 0;
  OrderedMerge ordered_;                                        // for order deterministic
  std::map<WorkerId, transfer::Fifo<ReceivedElement>> queues_;  // any: one queue, of no worker
  WorkerId last_;                                               // the worker of the last element
};

}  // namespace penstock::client
