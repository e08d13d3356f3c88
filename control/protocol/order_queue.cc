// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/order_queue.h"

#include <utility>

#include "control/protocol/invariant.h"

namespace penstock::protocol {

OrderQueue::OrderQueue(const Positions& positions, int64_t consumer, std::vector<IndexSet> passed)
    : positions_(positions), stride_(positions.stride()), lanes_(passed.size()) {
  for (size_t p = 0; p < lanes_.size(); ++p) {
    Lane& lane = lanes_[p];
    lane.offset = positions.OffsetOf(PartitionId(p + 1), consumer);
    lane.passed = std::move(passed[p]);
    lane.turn = lane.passed.FirstMissing();
  }
}

void OrderQueue::SetEnd(PartitionId partition, Index elements) {
  if (!partition || partition.value() > lanes_.size()) return;
  std::optional<Index>& end = lanes_[partition.value() - 1].end;
  if (!end) end = elements;
}

bool OrderQueue::Expects(PartitionId partition, Index index) const {
  if (!partition || partition.value() > lanes_.size() || index < 0) return false;
  const Lane& lane = LaneOf(partition);
  const int64_t turn = index / stride_;
  return lane.offset == index % stride_ && turn >= lane.turn && !lane.passed.Contains(turn);
}

std::optional<TurnOf> OrderQueue::Next() const {
  std::optional<TurnOf> first;
  Index lowest = 0;
  for (size_t p = 0; p < lanes_.size(); ++p) {
    const Lane& lane = lanes_[p];
    if (!lane.offset) continue;
    const Index index = IndexOf(lane);
    if (lane.end && index >= *lane.end) continue;
    if (first && index >= lowest) continue;
    first = TurnOf{PartitionId(p + 1), lane.turn};
    lowest = index;
  }
  return first;
}

void OrderQueue::Take() {
  const std::optional<TurnOf> next = Next();
  PENSTOCK_INVARIANT(next.has_value());
  Lane& lane = lanes_[next->partition.value() - 1];
  lane.turn = lane.passed.FirstMissing(lane.turn + 1);
}

std::optional<Index> OrderQueue::NextOf(PartitionId partition) const {
  const Lane& lane = LaneOf(partition);
  return lane.offset ? std::optional<Index>(IndexOf(lane)) : std::nullopt;
}

}  // namespace penstock::protocol
