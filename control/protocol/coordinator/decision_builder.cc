// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/coordinator/decision_builder.h"

#include <algorithm>
#include <utility>

namespace penstock::protocol {

Placement DecisionBuilder::placement(size_t partition) const {
  return raised_.size() > partition && raised_[partition]
             ? Placement(record_.partitions[partition].placement.value() + 1)
             : record_.partitions[partition].placement;
}

void DecisionBuilder::RaiseForOthers(size_t partition, const IndexSet& readers) {
  context_.partitions[partition].gives_back = true;
  IndexSet added = readers;
  if (const auto& audience = record_.partitions[partition].audience) {
    added.Remove(*audience);
    if (!added.empty()) AddChange(AudienceExtended{PartitionAt(partition), added});
  }
  RaiseAndFence(partition, {}, added);
}

void DecisionBuilder::Raise(size_t partition, ClientId welcomed) {
  context_.partitions[partition].gives_back = false;
  RaiseAndFence(partition, welcomed, {});
}

void DecisionBuilder::RaiseAndFence(size_t partition, ClientId welcomed, const IndexSet& added) {
  const PartitionRecord& now = record_.partitions[partition];
  raised_.resize(record_.partitions.size(), false);
  raised_[partition] = true;
  AddChange(PlacementRaised{PartitionAt(partition), placement(partition)});
  if (now.worker) Emit(Unassign{now.worker, PartitionAt(partition), now.placement});
  context_.NoteRaised(partition);
  context_.partitions[partition].rows_allowed = 0;
  context_.partitions[partition].remainder_announced = false;
  const auto fence = [&](size_t r) {
    if (record_.readers[r].reads() && record_.readers[r].client != welcomed)
      EmitFence(partition, r);
  };
  if (!now.audience || context_.partitions[partition].asks_all) {
    for (size_t r = 0; r < record_.readers.size(); ++r) fence(r);
  } else {
    IndexSet to = *now.audience;
    to.Add(added);
    ForEach(to, fence);
  }
}

bool DecisionBuilder::MayHold(size_t partition, size_t reader) const {
  if (record_.partitions[partition].MayServe(reader) || !context_.Knows(partition, reader))
    return true;
  const ReaderRecord& its = record_.readers[reader];
  IndexSet has = context_.partitions[partition].acks.Of(reader).reported;
  has.Add(Of(its.final, PartitionAt(partition)));  // elements of a Leave need no report
  return !Of(its.committed, PartitionAt(partition)).Contains(has) &&
         context_.broken != Broken::kMoveOnlyServed;
}

void DecisionBuilder::RaiseAssigned(size_t reader, ClientId welcomed) {
  IndexSet some = record_.PartitionsFor(reader);  // all that it may hold, and others
  some.Add(context_.Unknown(reader));
  some.Add(context_.readers[reader].acked);
  for (const auto& [partition, set] : record_.readers[reader].final)
    if (record_.Has(partition)) some.Add(PositionOf(partition.value() - 1));
  ForEach(some, [&](size_t p) {
    if (!record_.partitions[p].collecting() && MayHold(p, reader)) Raise(p, welcomed);
  });
}

void DecisionBuilder::Reopen(ClientId welcomed) {
  AddChange(IterationReopened{});
  for (size_t p = 0; p < record_.partitions.size(); ++p) Raise(p, welcomed);
}

void DecisionBuilder::EmitFence(size_t partition, size_t reader) {
  if (context_.present[reader])
    EmitTo(record_.readers[reader].client, record_.readers[reader].incarnation,
           Fence{PartitionAt(partition), placement(partition),
                 context_.partitions[partition].gives_back});
}

void DecisionBuilder::EmitWelcome(ClientId client, Incarnation incarnation,
                                  std::optional<size_t> partial) {
  Welcome welcome{client, incarnation, {}, partial.has_value()};
  IndexSet named = IndexSet::Of(0, PositionOf(record_.partitions.size()));
  if (partial) {
    named = record_.PartitionsFor(partial);
    ForEach(context_.collecting, [&](size_t p) {
      if (record_.partitions[p].collecting() && context_.partitions[p].asks_all)
        named.Add(PositionOf(p));
    });
  }
  welcome.placements.reserve(static_cast<size_t>(named.size()));
  ForEach(named, [&](size_t p) { welcome.placements.push_back({PartitionAt(p), placement(p)}); });
  Emit(std::move(welcome));
}

void DecisionBuilder::EndReader(size_t reader, ReceivedSets final) {
  AddChange(ReaderEnded{record_.readers[reader].client, std::move(final)});
  context_.NoteEnded(reader);
}

void DecisionBuilder::ResetReader(size_t reader, int64_t consumer) {
  context_.rounds.resend_waits_for = true;
  if (record_.coordinated() && consumer >= 0) {
    RoundsContext& rounds = context_.rounds;
    rounds.consumers.resize(static_cast<size_t>(record_.rounds.consumers));
    // The other consumers report their positions again, because a consumer that returns alone must
    // not begin at an earlier round than they have reached.
    for (ConsumerContext& other : rounds.consumers) {
      if (!record_.rounds.schedule.joined.empty()) other.reported = false;
    }
    rounds.consumers[static_cast<size_t>(consumer)] = {};
    rounds.agreed.reset();
    rounds.floor.reset();
  }
  context_.ResetReader(reader);
  context_.present[reader] = true;
  context_.waits[reader] = false;
}

void DecisionBuilder::AddToWorkers(Reader reader) {
  ForEach(record_.PartitionsFor(std::nullopt), [&](size_t p) {
    const PartitionRecord& partition = record_.partitions[p];
    if (!partition.collecting())
      Emit(AddReader{partition.worker, PartitionAt(p), partition.placement, reader});
  });
}

void DecisionBuilder::AddToWorker(size_t partition, size_t reader) {
  const PartitionRecord& placed = record_.partitions[partition];
  const ReaderRecord& its = record_.readers[reader];
  Emit(AddReader{placed.worker,
                 PartitionAt(partition),
                 placed.placement,
                 {its.client, its.incarnation, its.consumer}});
}

void DecisionBuilder::RemoveFromWorkers(ClientId client) {
  for (size_t p = 0; p < record_.partitions.size(); ++p) {
    const PartitionRecord& partition = record_.partitions[p];
    if (!partition.collecting())
      Emit(RemoveReader{partition.worker, PartitionAt(p), partition.placement, client});
  }
}

bool MayHaveAudiences(const IterationRecord& record) {
  return record.shared() && !record.at_least_once;
}

std::optional<size_t> FindActiveReader(const IterationRecord& record, ClientId client,
                                       Incarnation incarnation) {
  auto found = record.FindReader(client);
  if (!found || record.readers[*found].status != ReaderStatus::kActive ||
      record.readers[*found].incarnation != incarnation)
    return std::nullopt;
  return found;
}

bool SomebodyReads(const IterationRecord& record, size_t except) {
  for (size_t r = 0; r < record.readers.size(); ++r)
    if (r != except && record.readers[r].reads()) return true;
  return false;
}

namespace {

// Returns the union of the committed elements of all readers, the elements that active readers had
// when they were notified of the end, and the member `set` of the active readers that have not been
// notified.
IndexSet Had(const IterationRecord& record, const IterationContext& context,
             const Positions& positions, size_t partition, IndexSet AckState::*set) {
  const PartitionId id = PartitionAt(partition);
  const AckStates& acks = context.partitions[partition].acks;
  if (record.unites_indices()) {
    IndexSet had = Of(record.committed_by_any.sets, id);
    for (const auto& [reader, ack] : acks)
      if (record.readers[reader].reads()) had.Add(ack.*set);
    for (const size_t r : context.ended) {
      const ReaderRecord& reader = record.readers[r];
      if (reader.status == ReaderStatus::kActive) had.Add(Of(reader.final, id));
    }
    return had;
  }
  Together had(record, positions, id);
  for (size_t r = 0; r < record.readers.size(); ++r) {
    const ReaderRecord& reader = record.readers[r];
    had.Add(reader, Of(reader.committed, id));
    if (reader.status != ReaderStatus::kActive) continue;
    had.Add(reader, reader.end_notified ? Of(reader.final, id) : acks.Of(r).*set);
  }
  return std::move(had).Indices();
}

}  // namespace

IndexSet ClaimedOf(const IterationRecord& record, const IterationContext& context,
                   const Positions& positions, size_t partition) {
  return Had(record, context, positions, partition, &AckState::claimed);
}

IndexSet SkipOf(const IterationRecord& record, const IterationContext& context,
                const Positions& positions, size_t partition) {
  return Had(record, context, positions, partition, &AckState::reported);
}

bool IsFenced(const IterationRecord& record, const IterationContext& context, size_t partition,
              size_t reader) {
  return record.partitions[partition].MayServe(reader) || context.partitions[partition].asks_all;
}

bool HasReported(const IterationRecord& record, const IterationContext& context, size_t partition,
                 size_t reader) {
  const PartitionRecord& placed = record.partitions[partition];
  const bool is_asked = placed.collecting() && !record.closed;
  const bool fenced =
      is_asked ? IsFenced(record, context, partition, reader) : placed.MayServe(reader);
  // No worker sends anything to a reader that is not fenced. At its last fence, the reader reported
  // all that it had. A dispatcher that has started since then does not know this report.
  if (!fenced) return context.Knows(partition, reader) || context.broken == Broken::kAskOnlyServed;
  return context.HasAnswered(partition, reader, placed.placement);
}

bool AllReported(const IterationRecord& record, const IterationContext& context, size_t partition) {
  if (record.commit_policy == CommitPolicy::kNever) return true;  // no report matters
  const auto reported = [&](size_t r) {
    return !record.readers[r].reads() || HasReported(record, context, partition, r);
  };
  const PartitionRecord& placed = record.partitions[partition];
  if (!placed.audience || (placed.collecting() && context.partitions[partition].asks_all))
    return HoldsForEach(IndexSet::Of(0, PositionOf(record.readers.size())), reported);
  return std::all_of(context.unknown.begin(), context.unknown.end(), reported) &&
         HoldsForEach(*placed.audience, reported);
}

int64_t RoundsOf(const IterationRecord& record) {
  return record.coordinated() ? AllRounds(record.rounds.ends, record.rounds.consumers) : 0;
}

}  // namespace penstock::protocol
