// SPDX-License-Identifier: Apache-2.0
// Order kDeterministic: the place of each element in the order, and its consumer.
// docs/exactly_once.md, "A fixed order", has the rules and their reasons.
//
// Element `index` of partition p of K partitions has position index * K + p - 1. A position after
// the end of its partition has no element: it is a hole for which no consumer waits. From `first`
// on, positions go to C consumers in rotation: consumer i gets position first + tC + i in step t.
// If the job was restored, the elements before `first` were already in a history when it began.
//
// A consumer gets exactly one of any `stride` consecutive elements of a partition, or it gets no
// element of the partition. The sets of a consumer's elements are therefore stored as rows (index /
// stride), which are adjacent although the indices are not.
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "control/protocol/index_set.h"
#include "penstock/ids.h"

namespace penstock::protocol {

struct Positions {
  int64_t partitions = 1;  // K
  int64_t consumers = 1;   // C
  Index first = 0;         // g

  Index At(PartitionId partition, Index index) const {
    return index * partitions + static_cast<Index>(partition.value()) - 1;
  }
  // Returns the step of the element, counted from 0. REQUIRES: At() >= first.
  int64_t StepOf(PartitionId partition, Index index) const {
    return (At(partition, index) - first) / consumers;
  }
  int64_t ConsumerOf(PartitionId partition, Index index) const;

  int64_t stride() const { return consumers / std::gcd(partitions, consumers); }
  int64_t RowOf(Index index) const { return index / stride(); }
  // Returns the index of the consumer's row 0 in the partition. The position of this index may be
  // before `first`. Row t has an index that is higher by t * stride(). nullopt: the consumer gets
  // no element of this partition.
  std::optional<Index> OffsetOf(PartitionId partition, int64_t consumer) const;
  // Returns the number of partitions of which a consumer gets elements. It is the same for all
  // consumers.
  int64_t shares() const { return partitions / std::gcd(partitions, consumers); }

  // Returns, as rows, those of `indices` that belong to the consumer.
  IndexSet RowsIn(const IndexSet& indices, PartitionId partition, int64_t consumer) const;

  friend bool operator==(const Positions&, const Positions&) = default;
};

// Computes the union of the elements of one partition that several consumers have, as indices.
class RowUnion {
 public:
  RowUnion(const Positions& positions, PartitionId partition)
      : positions_(positions), partition_(partition) {}
  // Ignores the rows if the consumer gets no element of the partition.
  void Add(int64_t consumer, const IndexSet& rows);
  IndexSet Indices() &&;

 private:
  const Positions positions_;
  const PartitionId partition_;
  absl::InlinedVector<IndexSet, 4> rows_;  // by offset; a missing set is empty
};

}  // namespace penstock::protocol
