// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/ordered_merge.h"

#include <utility>

#include "penstock/check.h"

namespace penstock::client {

void OrderedMerge::Open(const std::vector<Index>& starts) {
  if (!lanes_.empty()) return;
  lanes_.resize(starts.size());
  for (size_t p = 0; p < starts.size(); ++p) lanes_[p].next = starts[p];
}

void OrderedMerge::SetEnd(PartitionId partition, Index elements) {
  if (partition && partition.value() <= lanes_.size()) lanes_[partition.value() - 1].end = elements;
}

void OrderedMerge::SetAllEnded() {
  all_ended_ = true;
}

void OrderedMerge::Push(Landed landed) {
  const Identity identity = landed.identity;
  PENSTOCK_CHECK(Expects(identity.partition, identity.index));
  lanes_[identity.partition.value() - 1].landed.emplace(identity.index, std::move(landed));
}

const OrderedMerge::Lane* OrderedMerge::Next() const {
  const Lane* first = nullptr;
  for (const Lane& lane : lanes_) {
    if (lane.end.has_value() ? lane.next >= *lane.end : all_ended_ && lane.landed.empty()) continue;
    if (first == nullptr || lane.next < first->next) first = &lane;
  }
  return first != nullptr && first->landed.contains(first->next) ? first : nullptr;
}

Landed OrderedMerge::Pop() {
  Lane* lane = const_cast<Lane*>(Next());
  PENSTOCK_CHECK(lane != nullptr);
  return std::move(lane->landed.extract(lane->next++).mapped());
}

}  // namespace penstock::client
