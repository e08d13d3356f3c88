// SPDX-License-Identifier: Apache-2.0
// What was received of order kDeterministic, in that order, which does not depend on
// who sends when (control/protocol/order_queue.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "control/protocol/order_queue.h"
#include "dataplane/client/received_element.h"
#include "penstock/ids.h"

namespace penstock::client {

// Not thread-safe.
class OrderedMerge {
 public:
  // As OrderQueue's. The first call counts.
  void Open(const protocol::Positions& positions, int64_t consumer, std::vector<IndexSet> passed);
  // `partition` has so many elements.
  void SetEnd(PartitionId partition, Index elements) { queue_.SetEnd(partition, elements); }
  // Nothing will come that was not received yet.
  void SetAllEnded();

  // Whether that element is this consumer's, and still to be returned.
  bool Expects(PartitionId partition, Index index) const {
    return queue_.Expects(partition, index);
  }
  // Kept until it is next. REQUIRES: it is expected, and not here yet.
  void Push(ReceivedElement received);
  // Whether the next element is here.
  bool ready() const;
  // REQUIRES: ready().
  ReceivedElement Pop();

  const protocol::OrderQueue& queue() const { return queue_; }

 private:
  protocol::OrderQueue queue_;
  std::vector<std::map<int64_t, ReceivedElement>> received_;  // by row; [0] is of partition 1
};

}  // namespace penstock::client
