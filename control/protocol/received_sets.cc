// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/received_sets.h"

#include <algorithm>
#include <iterator>

#include "penstock/fingerprint.h"

namespace penstock::protocol {
namespace {

// Returns the first entry of `partition` or of a later one.
template <class Entries>
auto FirstFrom(Entries& entries, PartitionId partition) {
  if (entries.empty() || std::prev(entries.end())->partition < partition) return entries.end();
  return std::ranges::lower_bound(entries, partition, {}, &ReceivedSets::Entry::partition);
}

// Returns the set of `partition`; nullptr if there is none.
template <class Entries>
auto Find(Entries& entries, PartitionId partition) {
  const auto at = FirstFrom(entries, partition);
  return at != entries.end() && at->partition == partition ? &at->set : nullptr;
}

const IndexSet& Nothing() {
  static const IndexSet* const nothing = new IndexSet;
  return *nothing;
}

}  // namespace

ReceivedSets::ReceivedSets(std::initializer_list<IndexSet> by_position) {
  uint64_t partition = 0;
  for (const IndexSet& set : by_position) Add(PartitionId(++partition), set);
}

void ReceivedSets::Add(PartitionId partition, const IndexSet& set) {
  if (set.empty()) return;
  if (IndexSet* const there = Find(entries_, partition)) return there->Add(set);
  entries_.insert(FirstFrom(entries_, partition), {partition, set});
}

const IndexSet& Of(const ReceivedSets& sets, PartitionId partition) {
  const IndexSet* const set = Find(sets, partition);
  return set != nullptr ? *set : Nothing();
}

void DenseSets::Add(PartitionId partition, const IndexSet& set) {
  if (set.empty()) return;
  if (sets_.size() < partition.value()) sets_.resize(partition.value());
  sets_[partition.value() - 1].Add(set);
}

void DenseSets::Add(const ReceivedSets& sets) {
  for (const auto& [partition, set] : sets) Add(partition, set);
}

const IndexSet& Of(const DenseSets& sets, PartitionId partition) {
  const size_t at = partition.value() - 1;
  return at < sets.sets_.size() ? sets.sets_[at] : Nothing();
}

bool Contains(const ReceivedSets& a, const ReceivedSets& b) {
  return std::ranges::all_of(b, [&](const ReceivedSets::Entry& entry) {
    return Of(a, entry.partition).Contains(entry.set);
  });
}

CommittedMark MarkOf(const ReceivedSets& committed) {
  CommittedMark mark;
  for (const auto& [partition, set] : committed) {
    for (const IndexSet::Interval& interval : set.intervals()) {
      mark.count += interval.end - interval.begin;
      for (const auto part :
           {static_cast<Index>(partition.value()) - 1, interval.begin, interval.end})
        mark.hash = Fingerprint(static_cast<uint64_t>(part), mark.hash);
    }
  }
  return mark;
}

}  // namespace penstock::protocol
