// SPDX-License-Identifier: Apache-2.0
// A set of indices (delivered, received, committed, skipped …), stored as sorted intervals. Small
// sets need no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "penstock/ids.h"

#pragma GCC visibility push(default)
namespace penstock {

// All indices and rows are below this number. No partition has more elements (a million elements a
// second for two years), and products of an index with numbers of consumers and partitions still
// fit into 64 bits.
inline constexpr Index kMostIndices = Index{1} << 46;

class IndexSet {
 public:
  struct Interval {  // begin ≤ i < end
    Index begin;
    Index end;
    friend bool operator==(const Interval&, const Interval&) = default;
    friend auto operator<=>(const Interval&, const Interval&) = default;
  };

  IndexSet() = default;
  // Returns the set of the indices in [begin, end).
  static IndexSet Of(Index begin, Index end);

  void Add(Index index) { Add(index, index + 1); }
  void Add(Index begin, Index end);
  void Add(const IndexSet& other);
  void Remove(const IndexSet& other);
  void clear() { intervals_.clear(); }

  bool Contains(Index index) const;
  bool Contains(const IndexSet& other) const;
  bool Intersects(const IndexSet& other) const;
  bool empty() const { return intervals_.empty(); }
  int64_t size() const;  // number of indices
  // Returns the lowest index ≥ `from` that is not in the set.
  Index FirstMissing(Index from = 0) const;
  Index end() const { return empty() ? 0 : intervals_.back().end; }  // highest index + 1
  absl::Span<const Interval> intervals() const { return intervals_; }

  // Returns a text such as "[0,7) [9,12)".
  std::string ToString() const;
  friend bool operator==(const IndexSet&, const IndexSet&) = default;

  template <class H>
  friend H AbslHashValue(H state, const IndexSet& set) {
    for (const Interval& i : set.intervals_) state = H::combine(std::move(state), i.begin, i.end);
    return H::combine(std::move(state), set.intervals_.size());
  }

 private:
  absl::InlinedVector<Interval, 2> intervals_;  // sorted, disjoint, not touching
};

}  // namespace penstock
#pragma GCC visibility pop
