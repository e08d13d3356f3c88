// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/coordinator/iteration_context.h"

#include <algorithm>

namespace penstock::protocol {
namespace {

void EraseFrom(absl::InlinedVector<size_t, 2>& positions, size_t reader) {
  const auto found = std::lower_bound(positions.begin(), positions.end(), reader);
  if (found != positions.end() && *found == reader) positions.erase(found);
}

}  // namespace

IterationContext MakeIterationContext(const IterationRecord& record, Broken broken) {
  IterationContext context;
  context.broken = broken;
  context.present.resize(record.readers.size(), false);
  context.waits.resize(record.readers.size(), false);
  context.readers.resize(record.readers.size());
  context.partitions.resize(record.partitions.size());
  context.opened_before = record.partitions.size();
  for (size_t r = 0; r < record.readers.size(); ++r) {
    const ReaderRecord& reader = record.readers[r];
    if (reader.reads()) context.unknown.push_back(r);
    if (reader.end_notified) context.ended.push_back(r);
  }
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    context.partitions[p].raised = context.raises;  // no reader is known to have answered
    context.partitions[p].asks_all = broken != Broken::kAskOnlyServed;
    if (record.partitions[p].collecting()) context.collecting.Add(PositionOf(p));
  }
  if (record.closed) context.owed = IndexSet::Of(0, PositionOf(record.partitions.size()));
  return context;
}

bool IterationContext::Knows(size_t partition, size_t reader) const {
  return partition >= opened_before || readers[reader].known ||
         readers[reader].listed.Contains(PositionOf(partition));
}

bool IterationContext::HasAnswered(size_t partition, size_t reader, Placement placement) const {
  return partitions[partition].raised <= readers[reader].reset ||
         partitions[partition].acks.Of(reader).at == placement;
}

IndexSet IterationContext::Unknown(size_t reader) const {
  if (readers[reader].known) return {};
  IndexSet unknown = IndexSet::Of(0, PositionOf(opened_before));
  unknown.Remove(readers[reader].listed);
  return unknown;
}

AckState& IterationContext::AckAt(size_t partition, size_t reader) {
  AckStates& acks = partitions[partition].acks;
  if (!acks.Has(reader)) readers[reader].acked.Add(PositionOf(partition));
  return acks.At(reader);
}

void IterationContext::EraseAck(size_t partition, size_t reader) {
  readers[reader].acked.Remove(JustPosition(partition));
  partitions[partition].acks.Erase(reader);
}

bool IterationContext::IsKept(const IterationRecord& record) const {
  const Positions order = PositionsOf(record);
  std::vector<IndexSet> acked(readers.size());
  size_t ended_partitions = 0;
  for (size_t p = 0; p < partitions.size(); ++p) {
    for (const auto& [reader, ack] : partitions[p].acks) acked[reader].Add(PositionOf(p));
    ended_partitions += partitions[p].ended ? 1 : 0;
    const bool owes = record.closed && !Owed(record, order, PartitionId(p + 1)).empty();
    const bool collects = !record.closed && record.partitions[p].collecting();
    if ((owes && !owed.Contains(PositionOf(p))) ||
        (collects && !collecting.Contains(PositionOf(p))))
      return false;
  }
  const auto has = [](const absl::InlinedVector<size_t, 2>& positions, size_t reader) {
    return std::binary_search(positions.begin(), positions.end(), reader);
  };
  for (size_t r = 0; r < record.readers.size(); ++r) {
    const ReaderRecord& reader = record.readers[r];
    if ((reader.end_notified && !has(ended, r)) ||
        (reader.reads() && !readers[r].known && !has(unknown, r)))
      return false;
  }
  return ended_partitions == num_ended &&
         std::ranges::equal(readers, acked, {}, &ReaderContext::acked);
}

void IterationContext::NoteEndOf(size_t partition, Index end) {
  if (!partitions[partition].ended) ++num_ended;
  partitions[partition].ended = end;
}

void IterationContext::NoteReported(size_t partition, size_t reader) {
  if (Knows(partition, reader)) return;
  IndexSet& listed = readers[reader].listed;
  listed.Add(PositionOf(partition));
  if (listed.Contains(IndexSet::Of(0, PositionOf(opened_before)))) NoteKnown(reader);
}

void IterationContext::NoteKnown(size_t reader) {
  readers[reader].known = true;
  readers[reader].listed.clear();
  EraseFrom(unknown, reader);
}

void IterationContext::NoteGone(size_t reader) {
  EraseFrom(unknown, reader);
}

void IterationContext::NoteEnded(size_t reader) {
  EraseFrom(unknown, reader);
  const auto at = std::lower_bound(ended.begin(), ended.end(), reader);
  if (at == ended.end() || *at != reader) ended.insert(at, reader);
}

void IterationContext::NoteRaised(size_t partition) {
  partitions[partition].raised = ++raises;
  if (partitions[partition].ended) --num_ended;
  partitions[partition].ended.reset();
  collecting.Add(PositionOf(partition));
}

void IterationContext::ResetReader(size_t reader) {
  present.resize(std::max(present.size(), reader + 1), false);
  waits.resize(present.size(), false);
  readers.resize(present.size());
  ForEach(readers[reader].acked, [&](size_t p) { partitions[p].acks.Erase(reader); });
  readers[reader] = {.reset = raises};
  NoteKnown(reader);
  EraseFrom(ended, reader);
}

}  // namespace penstock::protocol
