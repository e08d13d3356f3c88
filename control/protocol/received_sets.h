// SPDX-License-Identifier: Apache-2.0
// The elements that a reader has of each partition: committed, delivered, or in a state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "absl/container/inlined_vector.h"
#include "control/protocol/index_set.h"
#include "penstock/ids.h"

namespace penstock::protocol {

// One set per partition. The sets contain indices; the sets of a consumer contain rows (rounds.h,
// positions.h). Only sets that are not empty are stored, so the size follows from the partitions of
// which a reader has elements, and not from their numbers. Elements are only added, so that no set
// can become empty.
class ReceivedSets {
 public:
  struct Entry {
    PartitionId partition;
    IndexSet set;  // not empty
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  ReceivedSets() = default;
  // The first set belongs to partition 1.
  ReceivedSets(std::initializer_list<IndexSet> by_position);

  // Adds elements to the set of `partition`. Takes constant time for a partition after all others.
  // For any other partition it takes logarithmic time, and if its set was empty, also moves the
  // sets of all later partitions.
  void Add(PartitionId partition, const IndexSet& set);
  void clear() { entries_.clear(); }  // frees the memory too

  bool empty() const { return entries_.empty(); }
  // The sets that are not empty, in the order of their partitions.
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  friend bool operator==(const ReceivedSets&, const ReceivedSets&) = default;

 private:
  absl::InlinedVector<Entry, 1> entries_;  // ascending
};

// Returns the set of `partition`, valid until `sets` changes.
const IndexSet& Of(const ReceivedSets& sets, PartitionId partition);
// Returns whether each set of `a` contains the set of `b` for the same partition.
bool Contains(const ReceivedSets& a, const ReceivedSets& b);

// The same for nearly all partitions, as the elements that any reader has: Add() takes constant
// time in any order.
class DenseSets {
 public:
  void Add(PartitionId partition, const IndexSet& set);
  void Add(const ReceivedSets& sets);
  friend const IndexSet& Of(const DenseSets& sets, PartitionId partition);
  friend bool operator==(const DenseSets&, const DenseSets&) = default;

 private:
  absl::InlinedVector<IndexSet, 1> sets_;  // [0] is partition 1; the last is not empty
};
const IndexSet& Of(const DenseSets& sets, PartitionId partition);

// A summary of the elements that a reader had committed, kept after the sets are dropped. A state
// can be compared with it: the summary identifies states with exactly these elements.
struct CommittedMark {
  int64_t count = 0;
  uint64_t hash = 0;
  friend bool operator==(const CommittedMark&, const CommittedMark&) = default;
};
CommittedMark MarkOf(const ReceivedSets& committed);

}  // namespace penstock::protocol
