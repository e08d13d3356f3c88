// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/queues/order_queue.h"

#include <utility>

#include "control/protocol/invariant.h"

namespace penstock::protocol {

OrderQueue::OrderQueue(const Positions& positions, int64_t consumer, std::vector<IndexSet> passed)
    : positions_(positions), stride_(positions.stride()), cursors_(passed.size()) {
  for (size_t p = 0; p < cursors_.size(); ++p) {
    PartitionCursor& cursor = cursors_[p];
    cursor.offset = positions.OffsetOf(PartitionId(p + 1), consumer);
    cursor.passed = std::move(passed[p]);
    cursor.row = cursor.passed.FirstMissing();
  }
}

void OrderQueue::SetEnd(PartitionId partition, Index elements) {
  if (!partition || partition.value() > cursors_.size()) return;
  std::optional<Index>& end = cursors_[partition.value() - 1].end;
  if (!end) end = elements;
}

bool OrderQueue::Expects(PartitionId partition, Index index) const {
  if (!partition || partition.value() > cursors_.size() || index < 0) return false;
  const PartitionCursor& cursor = CursorOf(partition);
  const int64_t row = index / stride_;
  return cursor.offset == index % stride_ && row >= cursor.row && !cursor.passed.Contains(row);
}

std::optional<PartitionRow> OrderQueue::Next() const {
  std::optional<PartitionRow> first;
  Index lowest = 0;
  for (size_t p = 0; p < cursors_.size(); ++p) {
    const PartitionCursor& cursor = cursors_[p];
    if (!cursor.offset) continue;
    const Index index = IndexOf(cursor);
    if (cursor.end && index >= *cursor.end) continue;
    if (first && index >= lowest) continue;
    first = PartitionRow{PartitionId(p + 1), cursor.row};
    lowest = index;
  }
  return first;
}

void OrderQueue::Pop() {
  const std::optional<PartitionRow> next = Next();
  PENSTOCK_INVARIANT(next.has_value());
  PartitionCursor& cursor = cursors_[next->partition.value() - 1];
  cursor.row = cursor.passed.FirstMissing(cursor.row + 1);
}

std::optional<Index> OrderQueue::NextOf(PartitionId partition) const {
  const PartitionCursor& cursor = CursorOf(partition);
  return cursor.offset ? std::optional<Index>(IndexOf(cursor)) : std::nullopt;
}

}  // namespace penstock::protocol
