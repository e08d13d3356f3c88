// SPDX-License-Identifier: Apache-2.0
// A consumer's side of order kDeterministic (positions.h): decides which of its elements is next. A
// value; used by one thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "control/protocol/positions.h"
#include "control/protocol/rounds.h"

namespace penstock::protocol {

// The next element is always the one with the lowest position among the consumer's remaining
// elements, so only the delivered rows have to be stored.
class OrderQueue {
 public:
  OrderQueue() = default;
  // `passed`: by partition, the rows of this consumer that are already in a history.
  OrderQueue(const Positions& positions, int64_t consumer, std::vector<IndexSet> passed);

  // Sets the number of elements of `partition`. Only the first call counts.
  void SetEnd(PartitionId partition, Index elements);

  const Positions& positions() const { return positions_; }
  size_t partitions() const { return cursors_.size(); }
  // Returns whether the element belongs to this consumer and has not been delivered.
  bool Expects(PartitionId partition, Index index) const;
  // Returns the next row; nullopt if no row is left. A partition whose end is not set yet counts as
  // not ended: Next() may return a row that the partition turns out not to have.
  std::optional<PartitionRow> Next() const;
  // Notes that the row that Next() returns was delivered. REQUIRES: Next() returns a row.
  void Pop();
  // Returns the index of `partition` that is delivered next; nullopt if this consumer gets no
  // element of the partition.
  std::optional<Index> NextOf(PartitionId partition) const;

 private:
  struct PartitionCursor {
    std::optional<Index> offset;  // positions_.OffsetOf()
    int64_t row = 0;              // the next row
    std::optional<Index> end;
    IndexSet passed;
  };
  const PartitionCursor& CursorOf(PartitionId partition) const {
    return cursors_[partition.value() - 1];
  }
  Index IndexOf(const PartitionCursor& cursor) const {
    return cursor.row * stride_ + *cursor.offset;
  }

  Positions positions_;
  int64_t stride_ = 1;
  std::vector<PartitionCursor> cursors_;  // [0] is partition 1
};

}  // namespace penstock::protocol
