// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/ordered_merge.h"

#include <utility>

#include "penstock/check.h"

namespace penstock::client {

void OrderedMerge::Open(const protocol::Positions& positions, int64_t consumer,
                        std::vector<IndexSet> passed) {
  if (!landed_.empty()) return;
  landed_.resize(passed.size());
  queue_ = protocol::OrderQueue(positions, consumer, std::move(passed));
}

void OrderedMerge::SetAllEnded() {
  for (size_t p = 0; p < landed_.size(); ++p) {
    const std::map<int64_t, Landed>& lane = landed_[p];
    SetEnd(PartitionId(p + 1), lane.empty() ? 0 : lane.rbegin()->second.identity.index + 1);
  }
}

void OrderedMerge::Push(Landed landed) {
  const Identity identity = landed.identity;
  PENSTOCK_CHECK(Expects(identity.partition, identity.index));
  landed_[identity.partition.value() - 1].emplace(queue_.positions().TurnOf(identity.index),
                                                  std::move(landed));
}

bool OrderedMerge::ready() const {
  const std::optional<protocol::TurnOf> next = queue_.Next();
  return next && landed_[next->partition.value() - 1].contains(next->turn);
}

Landed OrderedMerge::Pop() {
  PENSTOCK_CHECK(ready());
  const protocol::TurnOf next = *queue_.Next();
  queue_.Take();
  return std::move(landed_[next.partition.value() - 1].extract(next.turn).mapped());
}

}  // namespace penstock::client
