// SPDX-License-Identifier: Apache-2.0
// In which order what was received is returned.
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

// any: as they were received. fair: one of each worker in turn, as far as there are.
// Elements of one worker stay in their order. deterministic: ordered_merge.h.
// Not thread-safe.
class Merge {
 public:
  explicit Merge(MergeOrder order) : order_(order) {}

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  void Push(ReceivedElement received);
  // Whether there is one to be returned now.
  bool ready() const { return order_ == MergeOrder::kDeterministic ? ordered_.ready() : !empty(); }
  // REQUIRES: ready().
  ReceivedElement Pop();
  // Takes out what is here of that partition, but for the first `keeps` that would be returned.
  // REQUIRES: not order kDeterministic.
  std::vector<ReceivedElement> GiveBack(PartitionId partition, size_t keeps);
  size_t CountOf(PartitionId partition) const;
  // No more comes from that worker. False as long as there is some of its: ask again.
  bool Forget(WorkerId worker);
  // Of order kDeterministic.
  OrderedMerge& ordered() { return ordered_; }
  const OrderedMerge& ordered() const { return ordered_; }

 private:
  const MergeOrder order_;
  size_t size_ = 0;
  OrderedMerge ordered_;                                        // deterministic
  std::map<WorkerId, transfer::Fifo<ReceivedElement>> queues_;  // any: one, of no worker
  WorkerId last_;                                               // whose turn was
};

}  // namespace penstock::client
