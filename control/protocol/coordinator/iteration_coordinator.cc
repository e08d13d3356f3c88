// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/coordinator/iteration_coordinator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "control/protocol/coordinator/decision_builder.h"
#include "control/protocol/coordinator/receive_budget.h"

namespace penstock::protocol {

// Rule 9. The previous dispatcher may have assigned a partition that, according to the record,
// waits for a worker. It may have done so under the partition's present placement, and readers may
// not have heard of that assignment.
Decision OnDispatcherStarts(const IterationRecord& record, IterationContext& context) {
  DecisionBuilder builder(record, context);
  if (record.closed || context.broken == Broken::kAssignAgainAtStart)
    return std::move(builder).Build();
  for (size_t p = 0; p < record.partitions.size(); ++p)
    if (record.partitions[p].collecting()) builder.Raise(p);
  return std::move(builder).Build();
}

// --- Workers -------------------------------------------------------------------

namespace {

// Returns whether the worker of an assigned partition may send to the reader. Rule 32: a reader
// that was added to an audience must have answered first.
bool IsServed(const IterationRecord& record, const IterationContext& context, size_t partition,
              size_t reader) {
  const PartitionRecord& placed = record.partitions[partition];
  if (!placed.audience) return true;
  return placed.MayServe(reader) && (context.HasAnswered(partition, reader, placed.placement) ||
                                     context.broken == Broken::kServeBeforeAnswer);
}

}  // namespace

std::vector<PartitionId> PartitionsOf(const IterationRecord& record, WorkerId worker) {
  std::vector<PartitionId> its;
  for (size_t p = 0; p < record.partitions.size(); ++p)
    if (worker && record.partitions[p].worker == worker) its.push_back(PartitionAt(p));
  return its;
}

Decision OnWorkerRegisters(const IterationRecord& record, IterationContext& context,
                           WorkerId worker, absl::Span<const HeldPlacement> held) {
  return OnWorkerRegisters(record, context, worker, PartitionsOf(record, worker), held);
}

Decision OnWorkerRegisters(const IterationRecord& record, IterationContext& context,
                           WorkerId worker, absl::Span<const PartitionId> its,
                           absl::Span<const HeldPlacement> held) {
  DecisionBuilder builder(record, context);
  auto holds = [&](PartitionId partition, Placement placement) {
    return std::any_of(held.begin(), held.end(), [&](const HeldPlacement& h) {
      return h.partition == partition && h.placement == placement;
    });
  };
  for (const HeldPlacement& h : held)
    if (!record.Has(h.partition) || record.partition(h.partition).worker != worker ||
        record.partition(h.partition).placement != h.placement)
      builder.Emit(Unassign{worker, h.partition, h.placement});
  // The readers of a cross-trainer cache are the same in all partitions of the worker.
  bool names_gone = record.commit_policy == CommitPolicy::kNever;
  for (const PartitionId id : its) {
    const size_t p = id.value() - 1;
    const PartitionRecord& partition = record.partitions[p];
    if (!holds(id, partition.placement)) {
      builder.Raise(p);
      continue;
    }
    context.partitions[p].rows_allowed = 0;  // the last AllowRows may have been lost
    context.partitions[p].remainder_announced = false;
    const auto name = [&](size_t r) {
      const ReaderRecord& reader = record.readers[r];
      if (reader.reads()) {
        if (IsServed(record, context, p, r)) builder.AddToWorker(p, r);
      } else if (names_gone) {
        builder.Emit(RemoveReader{worker, id, partition.placement, reader.client});
      }
    };
    ForEach(partition.audience.value_or(IndexSet::Of(0, PositionOf(record.readers.size()))), name);
    names_gone = false;
  }
  return std::move(builder).Build();
}

Decision OnWorkerGone(const IterationRecord& record, IterationContext& context, WorkerId worker) {
  return OnWorkerGone(record, context, PartitionsOf(record, worker));
}

Decision OnWorkerGone(const IterationRecord& record, IterationContext& context,
                      absl::Span<const PartitionId> its) {
  DecisionBuilder builder(record, context);
  for (const PartitionId id : its) builder.Raise(id.value() - 1);
  return std::move(builder).Build();
}

Decision OnRelieve(const IterationRecord& record, IterationContext& context,
                   PartitionId partition) {
  DecisionBuilder builder(record, context);
  if (record.Has(partition) && !record.partition(partition).collecting())
    builder.Raise(partition.value() - 1);
  return std::move(builder).Build();
}

namespace {

bool IsCurrent(const IterationRecord& record, WorkerId worker, PartitionId partition,
               Placement placement) {
  return record.Has(partition) && worker && record.partition(partition).worker == worker &&
         record.partition(partition).placement == placement;
}

}  // namespace

Decision OnEnded(const IterationRecord& record, IterationContext& context, WorkerId worker,
                 PartitionId partition, Placement placement, Index end) {
  if (IsCurrent(record, worker, partition, placement)) {
    context.NoteEndOf(partition.value() - 1, end);
    ++context.placing_changes;
  }
  return {};
}

Decision OnAtEnd(const IterationRecord& record, IterationContext& context, WorkerId worker,
                 PartitionId partition, Placement placement, Index end) {
  if (IsCurrent(record, worker, partition, placement))
    context.partitions[partition.value() - 1].at_end = end;
  return {};
}

Decision OnBookmark(const IterationRecord& record, IterationContext& context, WorkerId worker,
                    PartitionId partition, Placement placement, const Bookmark& bookmark) {
  DecisionBuilder builder(record, context);
  if (!IsCurrent(record, worker, partition, placement)) return std::move(builder).Build();
  const auto& bookmarks = record.partition(partition).bookmarks;
  if (!bookmarks.empty() && bookmark.index <= bookmarks.back().index)
    return std::move(builder).Build();  // a replay passes an old bookmark again
  const Positions positions = PositionsOf(record);
  const Index needed =
      context.broken == Broken::kRetireBelowDelivered
          ? SkipOf(record, context, positions, partition.value() - 1).FirstMissing()
      : record.commit_policy == CommitPolicy::kNever
          ? bookmark.index
          : FirstUncommitted(record, positions, partition);
  Index below = 0;  // the newest bookmark at or below `needed`
  for (const Bookmark& b : bookmarks)
    if (b.index <= needed) below = std::max(below, b.index);
  const bool newest = bookmark.index <= needed;
  if (newest) below = bookmark.index;
  const bool retires = !bookmarks.empty() && bookmarks.front().index < below;
  // Adding a bookmark may thin out the others. The bookmark that replaces the retired bookmarks
  // must stay, so it must be the first bookmark when the new one is added, or the new one itself.
  if (retires && !newest) builder.AddChange(BookmarksRetired{partition, below});
  builder.AddChange(BookmarkAdded{partition, bookmark});
  if (retires && newest) builder.AddChange(BookmarksRetired{partition, below});
  return std::move(builder).Build();
}

// --- After each event ------------------------------------------------------------

namespace {

// Returns whether a reader left before any reader was notified of the end. The elements of the
// reader that left may then still go to other readers.
bool SomebodyIsAway(const IterationRecord& record, const IterationContext& context) {
  return std::any_of(context.ended.begin(), context.ended.end(), [&](size_t r) {
    const ReaderRecord& reader = record.readers[r];
    return reader.status == ReaderStatus::kActive && reader.end_notified &&
           !record.partitions.front().end && !Contains(reader.committed, reader.final);
  });
}

// Returns whether `check` holds for each of these partitions. Begins with the partition `first`,
// for which it did not hold the last time. So an event costs one check, not one per partition,
// while that partition waits.
template <class Check>
bool HoldsForAll(const IndexSet& partitions, size_t& first, const Check& check) {
  IndexSet later = partitions;
  later.Remove(IndexSet::Of(0, PositionOf(first)));
  IndexSet earlier = partitions;
  earlier.Remove(later);
  const auto holds = [&](size_t p) {
    if (check(p)) return true;
    first = p;
    return false;
  };
  return HoldsForEach(later, holds) && HoldsForEach(earlier, holds);
}
template <class Check>
bool HoldsForAll(const IterationRecord& record, size_t& first, const Check& check) {
  return HoldsForAll(IndexSet::Of(0, PositionOf(record.partitions.size())), first, check);
}

// Returns whether everything has been sent, and each reader has reported what it has.
bool IsSent(const IterationRecord& record, const IterationContext& context, size_t partition) {
  return !record.partitions[partition].collecting() && context.partitions[partition].ended &&
         AllReported(record, context, partition);
}

// Rule 8.
bool MayClose(const IterationRecord& record, IterationContext& context) {
  if (record.coordinated() && record.rounds.ends.empty()) return false;
  if (record.partitions.empty() || SomebodyIsAway(record, context)) return false;
  const Positions positions = PositionsOf(record);
  return HoldsForAll(record, context.check_first_to_close, [&](size_t p) {
    if (!IsSent(record, context, p)) return false;
    const PartitionContext& partition_context = context.partitions[p];
    IndexSet covered = record.shared() && context.broken != Broken::kCloseOnReceived
                           ? ClaimedOf(record, context, positions, p)
                           : SkipOf(record, context, positions, p);
    if (context.broken == Broken::kCloseOnReceivedByDead)
      for (const auto& [reader, ack] : partition_context.acks) covered.Add(ack.reported);
    return covered.FirstMissing() >= *partition_context.ended;
  });
}

// Returns whether the reader has elements of the partition that it could give back.
bool Holds(const IterationRecord& record, size_t partition, size_t reader, const AckState& ack) {
  IndexSet held = ack.reported;
  held.Remove(Of(record.readers[reader].committed, PartitionAt(partition)));
  held.Remove(ack.claimed);
  return !held.empty();
}

// Returns the readers that wait.
IndexSet Waiting(const IterationRecord& record, const IterationContext& context) {
  IndexSet waiting;
  for (size_t r = 0; r < record.readers.size(); ++r)
    if (context.waits[r] && context.present[r] && record.readers[r].reads())
      waiting.Add(PositionOf(r));
  return waiting;
}

// Rule 25. Once all elements have been sent, a reader may wait for elements that another reader
// holds undelivered.
Decision ShareOut(const IterationRecord& record, IterationContext& context) {
  DecisionBuilder builder(record, context);
  if (!record.shared() || record.partitions.empty()) return std::move(builder).Build();
  // Below, the readers that have an element according to the reports are removed.
  IndexSet starving = Waiting(record, context);
  if (starving.empty() || !HoldsForAll(record, context.check_first_to_share,
                                       [&](size_t p) { return IsSent(record, context, p); }))
    return std::move(builder).Build();
  std::vector<std::pair<size_t, IndexSet>> held;  // positions of partitions, and their holders
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    IndexSet holders;
    for (const auto& [reader, ack] : context.partitions[p].acks)
      if (record.readers[reader].reads() && Holds(record, p, reader, ack))
        holders.Add(PositionOf(reader));
    if (holders.empty()) continue;
    starving.Remove(holders);
    held.emplace_back(p, std::move(holders));
  }
  if (starving.empty()) return std::move(builder).Build();
  for (auto& [p, holders] : held) {
    holders.Add(starving);
    builder.RaiseForOthers(p, holders);
  }
  Decision decision = std::move(builder).Build();
  if (!decision.empty()) context.waits.assign(record.readers.size(), false);
  return decision;
}

// Returns the elements that the reader has when it is notified of the end.
ReceivedSets FinalOf(const IterationRecord& record, const IterationContext& context,
                     size_t reader) {
  ReceivedSets final = record.readers[reader].committed;
  ForEach(context.readers[reader].acked, [&](size_t p) {
    final.Add(PartitionAt(p), context.partitions[p].acks.Of(reader).reported);
  });
  return final;
}

// Rule 13. Returns whether the reader can be notified of the end: it has reported all partitions of
// a closed iteration.
bool HasReportedAll(const IterationRecord& record, IterationContext& context, size_t reader) {
  size_t& first = context.readers[reader].check_first_to_end;
  const auto reported = [&](size_t p) { return HasReported(record, context, p, reader); };
  if (first < record.partitions.size() && !reported(first)) return false;  // without a set
  IndexSet asked = record.PartitionsFor(reader);
  asked.Add(context.Unknown(reader));
  return HoldsForAll(asked, first, reported);
}

// Returns whether all elements of the closed iteration are committed.
bool OwesNothing(const IterationRecord& record, IterationContext& context) {
  const Positions positions = PositionsOf(record);
  while (!context.owed.empty()) {
    const auto p = static_cast<size_t>(context.owed.intervals().front().begin);
    if (!Owed(record, positions, PartitionAt(p)).empty()) return false;
    context.owed.Remove(JustPosition(p));
  }
  return true;
}

}  // namespace

Decision Consequences(const IterationRecord& record, IterationContext& context) {
  if (Decision rounds = AgreeOnRounds(record, context); !rounds.empty()) return rounds;
  if (Decision order = ArrangeOrder(record, context); !order.empty()) return order;
  DecisionBuilder builder(record, context);
  if (record.finished) return std::move(builder).Build();
  if (!record.closed) {
    if (!MayClose(record, context)) return ShareOut(record, context);
    IterationClosed closed;
    for (size_t p = 0; p < record.partitions.size(); ++p) {
      const PartitionRecord& partition = record.partitions[p];
      closed.ends.push_back(*context.partitions[p].ended);
      builder.Emit(Unassign{partition.worker, PartitionAt(p), partition.placement});
    }
    builder.AddChange(std::move(closed));
    context.owed = IndexSet::Of(0, PositionOf(record.partitions.size()));
    return std::move(builder).Build();
  }
  for (size_t r = 0; r < record.readers.size(); ++r) {
    if (!context.present[r] || !record.readers[r].reads() || !HasReportedAll(record, context, r))
      continue;
    builder.EndReader(r, FinalOf(record, context, r));
    builder.EmitTo(record.readers[r].client, record.readers[r].incarnation, End{RoundsOf(record)});
  }
  Decision decision = std::move(builder).Build();
  if (!decision.empty() || SomebodyReads(record, record.readers.size()) ||
      !OwesNothing(record, context))
    return decision;
  decision.changes.push_back(IterationFinished{});
  return decision;
}

// --- Placing -------------------------------------------------------------------

// Bookmarks and committed elements decide what an assigned worker sends, and a schedule when, but
// not whether a partition is opened or assigned.
void CountForPlacing(IterationContext& context, const IterationChange& change) {
  const bool concerns_placing = !std::holds_alternative<BookmarkAdded>(change) &&
                                !std::holds_alternative<BookmarksRetired>(change) &&
                                !std::holds_alternative<ReaderCommitted>(change) &&
                                !std::holds_alternative<RoundsForgotten>(change);
  if (concerns_placing) ++context.placing_changes;
  const bool concerns_readers = std::holds_alternative<ReaderJoined>(change) ||
                                std::holds_alternative<ReaderReplaced>(change) ||
                                std::holds_alternative<ReaderGone>(change) ||
                                std::holds_alternative<ReaderEnded>(change);
  if (concerns_readers) ++context.reader_changes;
}

Decision OpenPartition(const IterationRecord& record, IterationContext& context) {
  DecisionBuilder builder(record, context);
  if (record.closed || !record.rounds.ends.empty()) return std::move(builder).Build();
  builder.AddChange(PartitionOpened{PartitionAt(record.partitions.size())});
  context.collecting.Add(PositionOf(context.partitions.size()));
  context.partitions.emplace_back();
  return std::move(builder).Build();
}

std::vector<PartitionId> Assignable(const IterationRecord& record,
                                    const IterationContext& context) {
  std::vector<PartitionId> assignable;
  if (record.closed || !SomebodyReads(record, record.readers.size())) return assignable;
  ForEach(context.collecting, [&](size_t p) {
    if (record.partitions[p].collecting() &&
        ((record.at_least_once && !context.partitions[p].gives_back) ||
         AllReported(record, context, p) || context.broken == Broken::kAssignWithoutFence))
      assignable.push_back(PartitionAt(p));
  });
  return assignable;
}

namespace {

// Pads are copies of the last element. If a pad must be sent, the worker must make the last element
// again.
void MakeForPads(const IterationRecord& record, Assign& assign) {
  const std::optional<Index> end = record.EndOf(assign.partition);
  if (!end || assign.remainder->pads == 0) return;
  if (assign.skip.FirstMissing(*end) < *end + assign.remainder->pads &&
      assign.skip.Contains(*end - 1)) {
    assign.skip.Remove(IndexSet::Of(*end - 1, *end));
    assign.copied = *end - 1;
  }
}

// Drops what need not be kept once only `audience` is served. Other readers are fenced before they
// are served again, and what they have is in skip because it is committed, or stays.
void DropAnswers(const IterationRecord& record, PartitionId partition, const IndexSet& audience,
                 IterationContext& context) {
  context.EraseAcksIf(partition.value() - 1, [&](const AckStates::Entry& entry) {
    const IndexSet& committed = Of(record.readers[entry.reader].committed, partition);
    return !audience.Contains(PositionOf(entry.reader)) && entry.ack.receive_limit == 0 &&
           committed.Contains(entry.ack.reported) && committed.Contains(entry.ack.claimed);
  });
}

}  // namespace

// Returns whether the partition must be assigned to the audience that it has: elements were given
// back for readers of it.
static bool KeepsAudience(const IterationRecord& record, const IterationContext& context,
                          PartitionId partition) {
  const PartitionRecord& placed = record.partition(partition);
  if (!placed.audience || !context.partitions[partition.value() - 1].gives_back) return false;
  return !HoldsForEach(*placed.audience, [&](size_t r) { return !record.readers[r].reads(); });
}

IndexSet MustAnswer(const IterationRecord& record, const IterationContext& context,
                    PartitionId partition, const std::optional<IndexSet>& audience) {
  IndexSet must;
  const PartitionRecord& placed = record.partition(partition);
  if (!placed.audience || KeepsAudience(record, context, partition) ||
      context.broken == Broken::kServeBeforeAnswer)
    return must;
  ForEach(audience.value_or(IndexSet::Of(0, PositionOf(record.readers.size()))), [&](size_t r) {
    if (record.readers[r].reads() &&
        !context.HasAnswered(partition.value() - 1, r, placed.placement))
      must.Add(PositionOf(r));
  });
  return must;
}

Decision ExtendAudience(const IterationRecord& record, IterationContext& context,
                        PartitionId partition, const IndexSet& readers) {
  DecisionBuilder builder(record, context);
  const PartitionRecord& placed = record.partition(partition);
  const size_t p = partition.value() - 1;
  if (record.closed || !placed.audience) return std::move(builder).Build();
  IndexSet added;
  ForEach(readers, [&](size_t r) {
    if (r >= record.readers.size() || placed.MayServe(r) || !record.readers[r].reads()) return;
    added.Add(PositionOf(r));
    const bool answered = context.HasAnswered(p, r, placed.placement);
    if (!answered) builder.EmitFence(p, r);
    if (!placed.collecting() && (answered || context.broken == Broken::kServeBeforeAnswer))
      builder.AddToWorker(p, r);
  });
  if (!added.empty()) builder.AddChange(AudienceExtended{partition, std::move(added)});
  return std::move(builder).Build();
}

Decision AssignTo(const IterationRecord& record, IterationContext& context, PartitionId partition,
                  WorkerId worker, std::optional<IndexSet> audience) {
  DecisionBuilder builder(record, context);
  const PartitionRecord& placed = record.partition(partition);
  const size_t p = partition.value() - 1;
  const Positions positions = PositionsOf(record);
  if (KeepsAudience(record, context, partition)) audience = placed.audience;
  Assign assign{.worker = worker,
                .partition = partition,
                .placement = placed.placement,
                .skip = SkipOf(record, context, positions, p),
                .bookmark = std::nullopt,
                .readers = {},
                .rows = 0,
                .remainder = std::nullopt,
                .positions = std::nullopt,
                .copied = std::nullopt};
  PartitionContext& partition_context = context.partitions[p];
  partition_context.asks_all = false;
  context.collecting.Remove(IndexSet::Of(PositionOf(p), PositionOf(p) + 1));
  if (!record.coordinated()) {
    assign.rows = partition_context.rows_allowed = SendLimitOf(record, context, p, positions);
    if (record.has_order_consumers()) assign.positions = positions;
  } else {
    // Until all consumers have reported their positions, rows are allowed only by AllowRows.
    if (context.rounds.agreed || record.rounds.schedule.joined.empty())
      assign.rows = RowsWithinBudget(record, context)[p];
    if (record.EndOf(partition)) assign.remainder = record.RemainderOf(partition);
    partition_context.rows_allowed = 0;
    NoteAllowed(assign.rows, partition_context);
    partition_context.remainder_announced = assign.remainder.has_value();
    MakeForPads(record, assign);
  }
  for (const Bookmark& bookmark : placed.bookmarks)
    if (bookmark.index <= assign.skip.FirstMissing() ||
        record.commit_policy == CommitPolicy::kNever || context.broken == Broken::kNewestBookmark)
      assign.bookmark = bookmark;
  IndexSet reading;
  ForEach(audience.value_or(IndexSet::Of(0, PositionOf(record.readers.size()))), [&](size_t r) {
    const ReaderRecord& reader = record.readers[r];
    if (!reader.reads()) return;
    reading.Add(PositionOf(r));
    assign.readers.push_back({reader.client, reader.incarnation, reader.consumer});
  });
  if (audience) {
    audience = std::move(reading);
    DropAnswers(record, partition, *audience, context);
  }
  builder.AddChange(PartitionAssigned{partition, placed.placement, worker, std::move(audience)});
  builder.Emit(std::move(assign));
  return std::move(builder).Build();
}

Decision GiveUp(const IterationRecord& record, IterationContext& context) {
  DecisionBuilder builder(record, context);
  if (!record.closed || record.finished) return std::move(builder).Build();
  for (const ReaderRecord& reader : record.readers)
    if (reader.reads()) builder.EmitTo(reader.client, reader.incarnation, End{RoundsOf(record)});
  builder.AddChange(IterationFinished{});
  return std::move(builder).Build();
}

}  // namespace penstock::protocol
