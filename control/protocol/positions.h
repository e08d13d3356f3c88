// SPDX-License-Identifier: Apache-2.0
// Order kDeterministic: where each element stands in the order of all, and whose it is.
// What must hold, and why: docs/exactly_once.md, "A fixed order".
//
// Element `index` of partition p of K has position index * K + p - 1. A position that no
// element has, behind the end of its partition, is a hole that nobody waits for. From `first`
// on positions go to C consumers in rotation: first + tC + i is consumer i's in step t. What
// lies before `first` was in somebody's history when the job began (a restore).
//
// Of `stride` consecutive elements of a partition a consumer has exactly one, or it never has any.
// So sets of what a consumer has are kept as rows (index / stride), which lie side by side where
// indices would not.
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
  // The step that it is returned in, counted from 0. REQUIRES: At() >= first.
  int64_t StepOf(PartitionId partition, Index index) const {
    return (At(partition, index) - first) / consumers;
  }
  int64_t ConsumerOf(PartitionId partition, Index index) const;

  int64_t stride() const { return consumers / std::gcd(partitions, consumers); }
  int64_t RowOf(Index index) const { return index / stride(); }
  // The index that is the consumer's row 0 of the partition, and may lie before `first`; that of
  // row t is t * stride() further. nullopt: nothing of this partition is the consumer's.
  std::optional<Index> OffsetOf(PartitionId partition, int64_t consumer) const;
  // Partitions of which a consumer has elements: as many for each.
  int64_t shares() const { return partitions / std::gcd(partitions, consumers); }

  // Those of `indices` that are the consumer's, as rows.
  IndexSet RowsIn(const IndexSet& indices, PartitionId partition, int64_t consumer) const;

  friend bool operator==(const Positions&, const Positions&) = default;
};

// What several consumers have of one partition together, in indices.
class RowUnion {
 public:
  RowUnion(const Positions& positions, PartitionId partition)
      : positions_(positions), partition_(partition) {}
  // What is not the consumer's is nothing.
  void Add(int64_t consumer, const IndexSet& rows);
  IndexSet Indices() &&;

 private:
  const Positions positions_;
  const PartitionId partition_;
  absl::InlinedVector<IndexSet, 4> rows_;  // by offset; shorter: the rest is empty
};

}  // namespace penstock::protocol
