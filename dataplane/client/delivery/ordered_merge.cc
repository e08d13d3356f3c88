// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/delivery/ordered_merge.h"

#include <utility>

#include "penstock/check.h"

namespace penstock::client {

void OrderedMerge::Open(const protocol::Positions& positions, int64_t consumer,
                        std::vector<IndexSet> passed) {
  if (!received_.empty()) return;
  received_.resize(passed.size());
  queue_ = protocol::OrderQueue(positions, consumer, std::move(passed));
}

void OrderedMerge::SetAllEnded() {
  for (size_t p = 0; p < received_.size(); ++p) {
    const std::map<int64_t, ReceivedElement>& waiting = received_[p];
    SetEnd(PartitionId(p + 1), waiting.empty() ? 0 : waiting.rbegin()->second.identity.index + 1);
  }
}

void OrderedMerge::Push(ReceivedElement&& received) {
  const Identity identity = received.identity;
  PENSTOCK_CHECK(Expects(identity.partition, identity.index));
  received_[identity.partition.value() - 1].emplace(queue_.positions().RowOf(identity.index),
                                                    std::move(received));
  ++size_;
}

bool OrderedMerge::ready() const {
  const std::optional<protocol::PartitionRow> next = queue_.Next();
  return next && received_[next->partition.value() - 1].contains(next->row);
}

ReceivedElement OrderedMerge::Pop() {
  PENSTOCK_CHECK(ready());
  const protocol::PartitionRow next = *queue_.Next();
  queue_.Pop();
  --size_;
  return std::move(received_[next.partition.value() - 1].extract(next.row).mapped());
}

}  // namespace penstock::client
