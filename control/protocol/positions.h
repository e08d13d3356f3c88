// SPDX-License-Identifier: Apache-2.0
// Order kDeterministic: the place of each element in the order, and its consumer. The rules and
// their reasons: docs/exactly_once.md, "A fixed order".
//
// Element `index` of partition p of K has position index * K + p - 1. A position after the end of
// its partition has no element: it is a hole that no consumer waits for. From `first` on, positions
// go to C consumers in rotation: first + tC + i is consumer i's in step t. Elements before `first`
// were in a history when the job began (a restore).
//
// A consumer has exactly one of `stride` consecutive elements of a partition, or it never has any.
// So the sets of a consumer's elements are kept as rows (index / stride), which are adjacent where
// indices are not.
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
  // Returns the index of the consumer's row 0 in the partition, which may be before `first`; row t
  // is t * stride() further. nullopt: the consumer has no element of this partition.
  std::optional<Index> OffsetOf(PartitionId partition, int64_t consumer) const;
  // Returns how many partitions a consumer has elements of; the same for every consumer.
  int64_t shares() const { return partitions / std::gcd(partitions, consumers); }

  // Returns the indices of the consumer among `indices`, as rows.
  IndexSet RowsIn(const IndexSet& indices, PartitionId partition, int64_t consumer) const;

  friend bool operator==(const Positions&, const Positions&) = default;
};

// Unites the elements that several consumers have of one partition, as indices.
class RowUnion {
 public:
  RowUnion(const Positions& positions, PartitionId partition)
      : positions_(positions), partition_(partition) {}
  // Ignores rows of a partition that has nothing for the consumer.
  void Add(int64_t consumer, const IndexSet& rows);
  IndexSet Indices() &&;

 private:
  const Positions positions_;
  const PartitionId partition_;
  absl::InlinedVector<IndexSet, 4> rows_;  // by offset; missing: empty
};

}  // namespace penstock::protocol
