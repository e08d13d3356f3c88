// SPDX-License-Identifier: Apache-2.0
// The dispatcher's decisions about the readers of an iteration, which join, report, commit, leave
// or die.
#include <algorithm>
#include <utility>

#include "control/protocol/coordinator/decision_builder.h"

namespace penstock::protocol {
namespace {

// For a closed iteration: returns whether each element is committed, or held by a reader that was
// notified of the end. For the reader at position `except`, the elements in `state` count instead
// of its final elements.
bool Secured(const IterationRecord& record, IterationContext& context, size_t except,
             const ReceivedSets& state = {}) {
  const Positions positions = PositionsOf(record);
  IndexSet owed;
  ForEach(context.owed, [&](size_t p) {
    if (!Owed(record, positions, PartitionAt(p)).empty()) owed.Add(PositionOf(p));
  });
  context.owed = std::move(owed);
  const auto has_all = [&](size_t p, const IndexSet& indices) {
    return indices.FirstMissing() >= record.partitions[p].end.value_or(0);
  };
  if (record.unites_indices()) {  // linear in the number of sets
    DenseSets had = record.committed_by_any.sets;
    for (const size_t r : context.ended)
      if (r != except && record.readers[r].end_notified) had.Add(record.readers[r].final);
    had.Add(state);
    return HoldsForEach(context.owed,
                        [&](size_t p) { return has_all(p, Of(had, PartitionAt(p))); });
  }
  return HoldsForEach(context.owed, [&](size_t p) {
    const PartitionId id = PartitionAt(p);
    Together together(record, positions, id);
    if (except < record.readers.size()) together.Add(record.readers[except], Of(state, id));
    for (size_t r = 0; r < record.readers.size(); ++r) {
      const ReaderRecord& reader = record.readers[r];
      together.Add(reader, Of(reader.committed, id));
      if (r != except && reader.end_notified) together.Add(reader, Of(reader.final, id));
    }
    return has_all(p, std::move(together).Indices());
  });
}

// For a closed iteration: returns whether a reader that joins now has to get elements that were
// delivered to dead readers and not committed.
bool OwesTo(const IterationRecord& record, IterationContext& context, const Connect& connect) {
  if (record.finished) return false;
  if (record.has_order_consumers()) return !HasAll(record, connect.consumer);
  return record.shared() && !Secured(record, context, record.readers.size());
}

// Releases the elements of a reader that leaves, except its committed elements.
void ReleaseReader(DecisionBuilder& builder, const IterationRecord& record,
                   IterationContext& context, size_t reader, const ReceivedSets& last_committed) {
  if (record.commit_policy == CommitPolicy::kNever)
    return builder.RemoveFromWorkers(record.readers[reader].client);
  if (context.broken == Broken::kNoRaiseOnDeath) return;
  if (!record.closed) {
    if (record.readers[reader].end_notified &&
        Contains(last_committed, record.readers[reader].final))
      return;
    builder.RaiseAssigned(reader);
  } else if (SomebodyReads(record, reader) && !Secured(record, context, reader, last_committed) &&
             context.broken != Broken::kClosedIsFinished) {
    builder.Reopen();
  }
}

// Returns whether another client reads under the number `consumer`. Nobody reads a finished
// iteration, in which readers that died stay active.
bool IsTaken(const IterationRecord& record, int64_t consumer, ClientId client) {
  return !record.finished &&
         std::any_of(record.readers.begin(), record.readers.end(), [&](const ReaderRecord& its) {
           return its.consumer == consumer && its.status == ReaderStatus::kActive &&
                  its.client != client;
         });
}

// Returns the reason for which a consumer cannot join; nullopt if it can. The consumers of a
// coordinated read go back together, with their states, so none can join without a state once
// rounds have begun. In order kDeterministic, a new consumer continues after the elements that its
// predecessor committed.
std::optional<Refusal> WhyNoConsumer(const IterationRecord& record, const Connect& connect) {
  if (!record.coordinated() && !record.has_order_consumers()) return std::nullopt;
  if (IsTaken(record, connect.consumer, connect.client)) return Refusal::kConsumerTaken;
  if (record.has_order_consumers()) return std::nullopt;
  const Schedule& schedule = record.rounds.schedule;
  if (record.closed || !schedule.joined.empty()) return Refusal::kRoundsBegan;
  return std::nullopt;
}

std::optional<Refusal> WhyNotResumed(const IterationRecord& record, const IterationContext& context,
                                     const ReaderRecord& reader, const Connect& connect) {
  const bool active = reader.status == ReaderStatus::kActive;
  if (!connect.state) return active ? Refusal::kReplaced : Refusal::kDeclaredDead;
  if (Lacks(record, reader, *connect.state)) return Refusal::kStateIsOlder;
  if (record.finished && !HasCommitted(record, reader, *connect.state)) return Refusal::kFinished;
  // The elements of a consumer in a coordinated read belong to no other reader, whether they are
  // committed or not.
  if (!active && !HasCommitted(record, reader, *connect.state) && !record.coordinated() &&
      context.broken != Broken::kNewerStateAfterDeath)
    return Refusal::kStateIsNewer;
  if (record.has_order_consumers() && IsTaken(record, reader.consumer, reader.client))
    return Refusal::kConsumerTaken;
  return std::nullopt;
}

// Returns the position of the reader if its Welcome names only the partitions that concern it.
std::optional<size_t> PartialFor(const IterationRecord& record, const Connect& connect,
                                 size_t position) {
  return connect.reports_all && MayHaveAudiences(record) ? std::optional(position) : std::nullopt;
}

Decision HandleJoin(const IterationRecord& record, IterationContext& context,
                    const Connect& connect) {
  DecisionBuilder builder(record, context);
  if (connect.state && !Contains({}, *connect.state)) {
    builder.Emit(Refused{connect.client, connect.incarnation, Refusal::kStateIsNewer});
    return std::move(builder).Build();
  }
  if (auto why = WhyNoConsumer(record, connect)) {
    builder.Emit(Refused{connect.client, connect.incarnation, *why});
    return std::move(builder).Build();
  }
  const std::optional<size_t> partial = PartialFor(record, connect, record.readers.size());
  if (record.closed) {
    if (!OwesTo(record, context, connect)) {
      builder.EmitWelcome(connect.client, connect.incarnation, partial);
      builder.EmitTo(connect.client, connect.incarnation, End{RoundsOf(record)});
      return std::move(builder).Build();
    }
    builder.Reopen(connect.client);
  }
  builder.EmitWelcome(connect.client, connect.incarnation, partial);
  builder.AddChange(ReaderJoined{connect.client, connect.incarnation, connect.consumer});
  builder.ResetReader(record.readers.size(), connect.consumer);
  context.readers.back().completes = partial.has_value();
  builder.AddToWorkers({connect.client, connect.incarnation, connect.consumer});
  return std::move(builder).Build();
}

Decision HandleReconnect(const IterationRecord& record, IterationContext& context,
                         const Connect& connect, size_t position) {
  const ReaderRecord& reader = record.readers[position];
  DecisionBuilder builder(record, context);
  const std::optional<size_t> partial = PartialFor(record, connect, position);
  context.readers[position].completes = partial.has_value();
  context.readers[position].on_stream.clear();
  context.present[position] = true;
  context.rounds.resend_waits_for = true;
  if (record.coordinated() && reader.consumer >= 0) {
    context.rounds.consumers.resize(static_cast<size_t>(record.rounds.consumers));
    context.rounds.consumers[static_cast<size_t>(reader.consumer)].announced.reset();
  }
  builder.EmitWelcome(reader.client, reader.incarnation, partial);
  if (reader.end_notified || record.finished) {
    builder.EmitTo(reader.client, reader.incarnation, End{RoundsOf(record)});
  } else if (!record.closed) {
    // With at_least_once a partition may be assigned already, but closing waits for the reader's
    // answer. A reader that was added to an assigned partition is asked in NoteAnswer().
    ForEach(record.at_least_once ? record.PartitionsFor(position) : context.collecting,
            [&](size_t p) {
              const PartitionRecord& partition = record.partitions[p];
              const bool asked = partition.collecting() || record.at_least_once;
              if (asked && IsFenced(record, context, p, position) &&
                  !context.HasAnswered(p, position, partition.placement))
                builder.EmitFence(p, position);
            });
  }
  return std::move(builder).Build();
}

// The reader has left, but the Left message to it was lost.
Decision HandleRepeatedLeave(const IterationRecord& record, IterationContext& context,
                             const ReaderRecord& reader) {
  DecisionBuilder builder(record, context);
  builder.EmitWelcome(reader.client, reader.incarnation, std::nullopt);
  builder.EmitTo(reader.client, reader.incarnation, Left{});
  return std::move(builder).Build();
}

// Rule 11.
Decision HandleResume(const IterationRecord& record, IterationContext& context, size_t position,
                      const Connect& connect) {
  const ReaderRecord& reader = record.readers[position];
  DecisionBuilder builder(record, context);
  if (auto why = WhyNotResumed(record, context, reader, connect)) {
    builder.Emit(Refused{connect.client, connect.incarnation, *why});
    return std::move(builder).Build();
  }
  const std::optional<size_t> partial = PartialFor(record, connect, position);
  if (record.finished) {
    builder.EmitWelcome(connect.client, connect.incarnation, partial);
    builder.EmitTo(connect.client, connect.incarnation, End{RoundsOf(record)});
    return std::move(builder).Build();
  }
  builder.AddChange(
      ReaderReplaced{connect.client, connect.incarnation, *connect.state, connect.round});
  bool ended = false;
  if (record.closed) {
    ended = Secured(record, context, position, *connect.state) ||
            context.broken == Broken::kClosedIsFinished;
    if (!ended) builder.Reopen(connect.client);
  } else if (reader.status == ReaderStatus::kActive ||
             !HasCommitted(record, reader, *connect.state)) {
    if (context.broken != Broken::kNoRaiseOnRestart)
      builder.RaiseAssigned(position, connect.client);
  } else {  // the partitions moved when the reader left, and it has only its committed elements
    builder.AddToWorkers({connect.client, connect.incarnation, reader.consumer});
  }
  builder.ResetReader(position, reader.consumer);
  context.readers[position].completes = partial.has_value();
  builder.EmitWelcome(connect.client, connect.incarnation, partial);
  if (ended) {
    builder.EndReader(position, *connect.state);
    builder.EmitTo(connect.client, connect.incarnation, End{RoundsOf(record)});
  }
  return std::move(builder).Build();
}

}  // namespace

Decision OnConnect(const IterationRecord& record, IterationContext& context,
                   const Connect& connect) {
  auto found = record.FindReader(connect.client);
  if (!found) return HandleJoin(record, context, connect);
  if (FindActiveReader(record, connect.client, connect.incarnation))
    return HandleReconnect(record, context, connect, *found);
  const ReaderRecord& reader = record.readers[*found];
  if (reader.status == ReaderStatus::kLeft && reader.incarnation == connect.incarnation &&
      !connect.state) {
    return HandleRepeatedLeave(record, context, reader);
  }
  return HandleResume(record, context, *found, connect);
}

std::optional<Refusal> WhyRefused(const IterationRecord& record, const IterationContext& context,
                                  const Connect& connect) {
  const auto found = record.FindReader(connect.client);
  if (!found || FindActiveReader(record, connect.client, connect.incarnation)) return std::nullopt;
  return WhyNotResumed(record, context, record.readers[*found], connect);
}

void OnDisconnect(const IterationRecord& record, IterationContext& context, ClientId client) {
  if (auto found = record.FindReader(client)) context.present[*found] = false;
}

// Notes the placement of the report. A reader that was added to an audience is served once it has
// answered. If its first report on a stream is no answer, the fence may have been lost.
static void NoteAnswer(DecisionBuilder& builder, const IterationRecord& record,
                       IterationContext& context, size_t reader, const Report& report) {
  const size_t p = report.partition.value() - 1;
  const PartitionRecord& placed = record.partitions[p];
  const bool added = !placed.collecting() && placed.audience && placed.MayServe(reader);
  if (added && report.whole && report.placement < placed.placement &&
      record.readers[reader].reads() && !context.HasAnswered(p, reader, placed.placement))
    builder.EmitFence(p, reader);
  if (report.placement > placed.placement) return;
  // The answer of a reader that is not fenced is not kept: before it is served, it is fenced.
  const bool fenced =
      placed.collecting() ? IsFenced(record, context, p, reader) : placed.MayServe(reader);
  const bool answers = fenced && report.placement == placed.placement &&
                       !context.HasAnswered(p, reader, placed.placement);
  if (!answers && context.Knows(p, reader)) return;
  context.NoteReported(p, reader);
  if (answers) context.AckAt(p, reader).at = report.placement;
  if (placed.collecting()) {
    if (AllReported(record, context, p)) ++context.placing_changes;
  } else if (added && answers) {
    builder.AddToWorker(p, reader);
  }
}

// Returns whether the report names only elements that the reader has committed. The elements of
// consumers count otherwise: their rows are also compared with the rows that were sent.
static bool NamesOnlyCommitted(const IterationRecord& record, const ReaderRecord& reader,
                               const Report& report) {
  const IndexSet& committed = Of(reader.committed, report.partition);
  return record.unites_indices() && committed.Contains(report.delivered) &&
         committed.Contains(report.received) && committed.Contains(report.handed);
}

// Returns whether the report is the first about its partition on the stream.
static bool NoteOnStream(ReaderContext& reader, const Report& report) {
  if (!reader.completes) return report.whole;
  const Index at = PositionOf(report.partition.value() - 1);
  const bool first = !reader.on_stream.Contains(at);
  reader.on_stream.Add(at);
  return first || report.whole;
}

Decision OnReport(const IterationRecord& record, IterationContext& context, ClientId client,
                  Incarnation incarnation, const Report& report) {
  DecisionBuilder builder(record, context);
  auto found = FindActiveReader(record, client, incarnation);
  if (!found || !record.Has(report.partition) || record.finished) return std::move(builder).Build();
  const ReaderRecord& reader = record.readers[*found];
  NoteAnswer(builder, record, context, *found, report);
  const bool whole = NoteOnStream(context.readers[*found], report);
  if (!report.received.empty()) context.waits[*found] = false;
  const size_t p = report.partition.value() - 1;
  if (!context.partitions[p].acks.Has(*found) && NamesOnlyCommitted(record, reader, report))
    return std::move(builder).Build();
  AckState& ack = context.AckAt(p, *found);
  if (whole) {
    ack.reported.clear();
    ack.claimed.clear();
  }
  ack.reported.Remove(report.returned);
  ack.reported.Add(report.delivered);
  if (record.shared()) {
    if (context.broken != Broken::kHandedKeepsOpen) ack.claimed.Add(report.handed);
    if (record.commit_policy == CommitPolicy::kExplicit)
      ack.claimed.Add(report.delivered);
    else
      ack.claimed.Remove(report.delivered);
  }
  if (context.broken != Broken::kSkipWithoutReceived) ack.reported.Add(report.received);
  if (record.commit_policy == CommitPolicy::kOnDelivery) {
    IndexSet added = report.delivered;
    if (context.broken == Broken::kHandedIsCommitted) added.Add(report.handed);
    added.Remove(Of(reader.committed, report.partition));
    if (!added.empty())
      builder.AddChange(ReaderCommitted{client, report.partition, std::move(added)});
  }
  return std::move(builder).Build();
}

Decision OnReportsComplete(const IterationRecord& record, IterationContext& context,
                           ClientId client, Incarnation incarnation) {
  const auto found = FindActiveReader(record, client, incarnation);
  if (!found || record.finished) return {};
  ReaderContext& its = context.readers[*found];
  if (!std::exchange(its.completes, false)) return {};
  if (context.broken == Broken::kCompleteForgets) its.on_stream.clear();
  if (context.broken == Broken::kCompleteIsAnswer)
    for (size_t p = 0; p < record.partitions.size(); ++p)
      context.AckAt(p, *found).at = record.partitions[p].placement;
  IndexSet unreported = its.acked;
  unreported.Remove(its.on_stream);
  ForEach(unreported, [&](size_t p) {
    AckState& ack = context.AckAt(p, *found);
    ack.reported.clear();
    ack.claimed.clear();
    if (!record.partitions[p].MayServe(*found)) context.EraseAck(p, *found);
  });
  its.on_stream.clear();
  if (its.known) return {};
  context.NoteKnown(*found);
  ForEach(context.collecting, [&](size_t p) {
    // All others wait for answers, which a completion is not.
    const bool may_wait = record.partitions[p].audience && !context.partitions[p].asks_all;
    if (may_wait && record.partitions[p].collecting() && AllReported(record, context, p))
      ++context.placing_changes;
  });
  return {};
}

void OnWaits(const IterationRecord& record, IterationContext& context, ClientId client,
             Incarnation incarnation) {
  if (const auto found = FindActiveReader(record, client, incarnation))
    context.waits[*found] = true;
}

namespace {

// Adds the changes that commit `committed` for the reader.
void AddCommitted(DecisionBuilder& builder, const IterationRecord& record,
                  const ReaderRecord& reader, const ReceivedSets& committed) {
  for (const auto& [partition, set] : committed) {
    if (!record.Has(partition)) break;
    IndexSet added = set;
    added.Remove(Of(reader.committed, partition));
    if (!added.empty())
      builder.AddChange(ReaderCommitted{reader.client, partition, std::move(added)});
  }
}

}  // namespace

Decision OnCommit(const IterationRecord& record, IterationContext& context, ClientId client,
                  Incarnation incarnation, const Commit& commit) {
  DecisionBuilder builder(record, context);
  auto found = FindActiveReader(record, client, incarnation);
  if (!found) return std::move(builder).Build();
  if (!record.finished) AddCommitted(builder, record, record.readers[*found], commit.committed);
  builder.EmitTo(client, incarnation, Committed{commit.number});
  return std::move(builder).Build();
}

namespace {

// The reader's process is gone, but a state of it that arrives later may contain the elements that
// were delivered to it. These elements are kept for the reader, as they are after the end, and no
// decision waits for its answers any more.
void MayComeBack(DecisionBuilder& builder, const IterationRecord& record, size_t position,
                 const ReceivedSets& delivered) {
  const ReaderRecord& reader = record.readers[position];
  // In a coordinated read, all other consumers wait for this one anyway.
  if (!reader.reads() || record.coordinated()) return;
  builder.EndReader(position, delivered);
  builder.RaiseAssigned(position);
}

}  // namespace

Decision OnLeave(const IterationRecord& record, IterationContext& context, ClientId client,
                 Incarnation incarnation, const Leave& leave) {
  DecisionBuilder builder(record, context);
  auto found = FindActiveReader(record, client, incarnation);
  if (found && !record.finished) {
    const ReaderRecord& reader = record.readers[*found];
    context.present[*found] = false;
    if (record.commit_policy == CommitPolicy::kExplicit &&
        !Contains(reader.committed, leave.delivered)) {
      MayComeBack(builder, record, *found, leave.delivered);
    } else {
      const bool on_delivery = record.commit_policy == CommitPolicy::kOnDelivery;
      if (on_delivery) AddCommitted(builder, record, reader, leave.delivered);
      builder.AddChange(ReaderGone{client, ReaderStatus::kLeft});
      context.NoteGone(*found);
      ReleaseReader(builder, record, context, *found,
                    on_delivery ? leave.delivered : reader.committed);
    }
  }
  builder.EmitTo(client, incarnation, Left{});
  return std::move(builder).Build();
}

Decision OnReaderExpired(const IterationRecord& record, IterationContext& context,
                         ClientId client) {
  DecisionBuilder builder(record, context);
  auto found = record.FindReader(client);
  if (!found || record.readers[*found].status != ReaderStatus::kActive || record.finished)
    return std::move(builder).Build();
  const ReaderRecord& reader = record.readers[*found];
  builder.AddChange(ReaderGone{client, ReaderStatus::kExpired});
  context.NoteGone(*found);
  builder.Emit(Refused{client, reader.incarnation, Refusal::kDeclaredDead});
  context.present[*found] = false;
  ReleaseReader(builder, record, context, *found, reader.committed);
  return std::move(builder).Build();
}

}  // namespace penstock::protocol
