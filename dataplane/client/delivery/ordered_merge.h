// SPDX-License-Identifier: Apache-2.0
// Holds received elements of order kDeterministic and returns them in that order
// (control/protocol/queues/order_queue.h), no matter when workers send them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "control/protocol/queues/order_queue.h"
#include "dataplane/client/delivery/received_element.h"
#include "penstock/ids.h"

namespace penstock::client {

// Not thread-safe.
class OrderedMerge {
 public:
  // Takes the arguments of OrderQueue's constructor. Only the first call counts.
  void Open(const protocol::Positions& positions, int64_t consumer, std::vector<IndexSet> passed);
  // Sets the number of elements of `partition`.
  void SetEnd(PartitionId partition, Index elements) { queue_.SetEnd(partition, elements); }
  // Records that nothing more will be received.
  void SetAllEnded();

  // Returns true if the element at `index` is for this consumer and has not been returned.
  bool Expects(PartitionId partition, Index index) const {
    return queue_.Expects(partition, index);
  }
  // Keeps the element until its turn comes. REQUIRES: the element is expected, and not here yet.
  void Push(ReceivedElement&& received);
  size_t size() const { return size_; }
  // Returns true if the next element is here.
  bool ready() const;
  // REQUIRES: ready().
  ReceivedElement Pop();

  const protocol::OrderQueue& queue() const { return queue_; }

 private:
  protocol::OrderQueue queue_;
  std::vector<std::map<int64_t, ReceivedElement>> received_;  // by row; [0] is partition 1
  size_t size_ = 0;
};

}  // namespace penstock::client
