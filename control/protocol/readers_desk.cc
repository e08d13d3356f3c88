// SPDX-License-Identifier: Apache-2.0
// What the dispatcher decides about the readers of an iteration: who comes, says what it has,
// commits, leaves or dies.
#include <algorithm>
#include <utility>

#include "control/protocol/deciding.h"

namespace penstock::protocol {
namespace {

// Of a closed iteration: whether all is kept, or at a living reader that was
// told the end; `except` (not counted) has `state` instead.
bool Secured(const IterationRecord& record, size_t except, const Holdings& state = {}) {
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    const PartitionId id = PartitionAt(p);
    Together together(record, id);
    if (except < record.readers.size()) together.Add(record.readers[except], Of(state, id));
    for (size_t r = 0; r < record.readers.size(); ++r) {
      const ReaderRecord& reader = record.readers[r];
      together.Add(reader, Of(reader.kept, id));
      if (r != except && reader.told_end) together.Add(reader, Of(reader.final, id));
    }
    if (std::move(together).Indices().FirstMissing() < record.partitions[p].end.value_or(0))
      return false;
  }
  return true;
}

// A reader that goes takes nothing more with it than what it kept.
void Goes(Deciding& deciding, const IterationRecord& record, const Desk& desk, size_t reader,
          const Holdings& last_kept) {
  if (desk.broken == Broken::kNoRaiseOnDeath || record.keep == KeepPolicy::kNothing) return;
  if (!record.closed) {
    if (record.readers[reader].told_end && Contains(last_kept, record.readers[reader].final))
      return;
    deciding.RaiseAssigned();
  } else if (SomebodyReads(record, reader) && !Secured(record, reader, last_kept) &&
             desk.broken != Broken::kClosedIsFinished) {
    deciding.Reopen();
  }
}

// Whether another client than this one reads under the consumer's number.
bool IsTaken(const IterationRecord& record, int64_t consumer, ClientId client) {
  return std::any_of(record.readers.begin(), record.readers.end(), [&](const ReaderRecord& its) {
    return its.consumer == consumer && its.standing == Standing::kLiving && its.client != client;
  });
}

// Of one that joins a coordinated read: consumers go back by their states, together. In order
// kDeterministic one follows another, behind what that had kept.
std::optional<Refusal> WhyNoConsumer(const IterationRecord& record, const Presents& presents) {
  if (!record.coordinated() && !record.dealt()) return std::nullopt;
  if (IsTaken(record, presents.consumer, presents.client)) return Refusal::kConsumerTaken;
  if (record.dealt()) return std::nullopt;
  const Schedule& schedule = record.rounds.schedule;
  if (record.closed || !schedule.joined.empty()) return Refusal::kRoundsBegan;
  return std::nullopt;
}

std::optional<Refusal> WhyRefused(const IterationRecord& record, const Desk& desk,
                                  const ReaderRecord& reader, const Presents& presents) {
  const bool living = reader.standing == Standing::kLiving;
  if (!presents.state) return living ? Refusal::kReplaced : Refusal::kDeclaredDead;
  if (Lacks(record, reader, *presents.state)) return Refusal::kStateIsOlder;
  if (record.finished && !HasKept(record, reader, *presents.state)) return Refusal::kFinished;
  // In a coordinated read what a consumer took is nobody else's, committed or not.
  if (!living && !HasKept(record, reader, *presents.state) && !record.coordinated() &&
      desk.broken != Broken::kNewerStateAfterDeath)
    return Refusal::kStateIsNewer;
  if (record.dealt() && IsTaken(record, reader.consumer, reader.client))
    return Refusal::kConsumerTaken;
  return std::nullopt;
}

Decision Joins(const IterationRecord& record, Desk& desk, const Presents& presents) {
  Deciding deciding(record, desk);
  if (presents.state && !Contains({}, *presents.state)) {
    deciding.Says(Refused{presents.client, presents.incarnation, Refusal::kStateIsNewer});
    return std::move(deciding).Done();
  }
  if (auto why = WhyNoConsumer(record, presents)) {
    deciding.Says(Refused{presents.client, presents.incarnation, *why});
    return std::move(deciding).Done();
  }
  if (record.closed) {
    // The next reader gets what dead ones had taken and not committed.
    if (record.finished || !record.shared() || Secured(record, record.readers.size())) {
      deciding.SaysWelcome(presents.client, presents.incarnation);
      deciding.Says(End{presents.client, presents.incarnation, RoundsOf(record)});
      return std::move(deciding).Done();
    }
    deciding.Reopen(presents.client);
  }
  deciding.SaysWelcome(presents.client, presents.incarnation);
  deciding.Changes(ReaderJoined{presents.client, presents.incarnation, presents.consumer});
  deciding.HearsAsNew(record.readers.size(), presents.consumer);
  deciding.AddToWorkers({presents.client, presents.incarnation, presents.consumer});
  return std::move(deciding).Done();
}

Decision ComesBack(const IterationRecord& record, Desk& desk, size_t position) {
  const ReaderRecord& reader = record.readers[position];
  Deciding deciding(record, desk);
  desk.present[position] = true;
  desk.rounds.unheard = true;
  if (record.coordinated() && reader.consumer >= 0) {
    desk.rounds.consumers.resize(static_cast<size_t>(record.rounds.consumers));
    desk.rounds.consumers[static_cast<size_t>(reader.consumer)].told.reset();
  }
  deciding.SaysWelcome(reader.client, reader.incarnation);
  if (reader.told_end || record.finished) {
    deciding.Says(End{reader.client, reader.incarnation, RoundsOf(record)});
  } else if (!record.closed) {
    for (size_t p = 0; p < record.partitions.size(); ++p)
      // At least once: it may be assigned already, and closing waits for the answer.
      if ((record.partitions[p].collecting() || record.at_least_once) &&
          desk.partitions[p].readers[position].at != record.partitions[p].placement)
        deciding.AskFor(p, position);
  }
  return std::move(deciding).Done();
}

// It left, and what told it so was lost.
Decision HasLeft(const IterationRecord& record, Desk& desk, const ReaderRecord& reader) {
  Deciding deciding(record, desk);
  deciding.SaysWelcome(reader.client, reader.incarnation);
  deciding.Says(LeaveDone{reader.client, reader.incarnation});
  return std::move(deciding).Done();
}

// Rule 11.
Decision TakesUp(const IterationRecord& record, Desk& desk, size_t position,
                 const Presents& presents) {
  const ReaderRecord& reader = record.readers[position];
  Deciding deciding(record, desk);
  if (auto why = WhyRefused(record, desk, reader, presents)) {
    deciding.Says(Refused{presents.client, presents.incarnation, *why});
    return std::move(deciding).Done();
  }
  if (record.finished) {
    deciding.SaysWelcome(presents.client, presents.incarnation);
    deciding.Says(End{presents.client, presents.incarnation, RoundsOf(record)});
    return std::move(deciding).Done();
  }
  deciding.Changes(
      ReaderReplaced{presents.client, presents.incarnation, *presents.state, presents.round});
  bool ended = false;
  if (record.closed) {
    ended = Secured(record, position, *presents.state) || desk.broken == Broken::kClosedIsFinished;
    if (!ended) deciding.Reopen(presents.client);
  } else if (reader.standing == Standing::kLiving || !HasKept(record, reader, *presents.state)) {
    if (desk.broken != Broken::kNoRaiseOnRestart) deciding.RaiseAssigned(presents.client);
  } else {  // all was placed anew when it went: it has nothing but what it kept
    deciding.AddToWorkers({presents.client, presents.incarnation, reader.consumer});
  }
  deciding.HearsAsNew(position, reader.consumer);
  deciding.SaysWelcome(presents.client, presents.incarnation);
  if (ended) {
    deciding.Changes(ReaderEnded{presents.client, *presents.state});
    deciding.Says(End{presents.client, presents.incarnation, RoundsOf(record)});
  }
  return std::move(deciding).Done();
}

}  // namespace

Decision OnPresents(const IterationRecord& record, Desk& desk, const Presents& presents) {
  auto found = record.FindReader(presents.client);
  if (!found) return Joins(record, desk, presents);
  if (Living(record, presents.client, presents.incarnation)) return ComesBack(record, desk, *found);
  const ReaderRecord& reader = record.readers[*found];
  if (reader.standing == Standing::kLeft && reader.incarnation == presents.incarnation &&
      !presents.state) {
    return HasLeft(record, desk, reader);
  }
  return TakesUp(record, desk, *found, presents);
}

void OnDisconnects(const IterationRecord& record, Desk& desk, ClientId client) {
  if (auto found = record.FindReader(client)) desk.present[*found] = false;
}

Decision OnReport(const IterationRecord& record, Desk& desk, ClientId client,
                  Incarnation incarnation, const Report& report) {
  Deciding deciding(record, desk);
  auto found = Living(record, client, incarnation);
  if (!found || !record.Has(report.partition) || record.finished) return std::move(deciding).Done();
  const ReaderRecord& reader = record.readers[*found];
  Heard& heard = desk.partitions[report.partition.value() - 1].readers[*found];
  if (report.placement == record.partition(report.partition).placement) heard.at = report.placement;
  if (report.whole) {
    heard.has.clear();
    heard.claimed.clear();
  }
  heard.has.Remove(report.returned);
  if (!report.landed.empty()) desk.waits[*found] = false;
  heard.has.Add(report.taken);
  if (record.shared()) {
    if (desk.broken != Broken::kHandedKeepsOpen) heard.claimed.Add(report.handed);
    if (record.keep == KeepPolicy::kCommitted)
      heard.claimed.Add(report.taken);
    else
      heard.claimed.Remove(report.taken);
  }
  if (desk.broken != Broken::kSkipWithoutLanded) heard.has.Add(report.landed);
  if (record.keep == KeepPolicy::kTaken) {
    IndexSet added = report.taken;
    if (desk.broken == Broken::kHandedIsKept) added.Add(report.handed);
    added.Remove(Of(reader.kept, report.partition));
    if (!added.empty()) deciding.Changes(ReaderKept{client, report.partition, std::move(added)});
  }
  return std::move(deciding).Done();
}

void OnWaits(const IterationRecord& record, Desk& desk, ClientId client, Incarnation incarnation) {
  if (const auto found = Living(record, client, incarnation)) desk.waits[*found] = true;
}

namespace {

// The changes that make `kept` the reader's.
void Keeps(Deciding& deciding, const IterationRecord& record, const ReaderRecord& reader,
           const Holdings& kept) {
  const size_t partitions = std::min(kept.size(), record.partitions.size());
  for (size_t p = 0; p < partitions; ++p) {
    IndexSet added = kept[p];
    added.Remove(Of(reader.kept, PartitionAt(p)));
    if (!added.empty())
      deciding.Changes(ReaderKept{reader.client, PartitionAt(p), std::move(added)});
  }
}

}  // namespace

Decision OnCommit(const IterationRecord& record, Desk& desk, ClientId client,
                  Incarnation incarnation, const Commit& commit) {
  Deciding deciding(record, desk);
  auto found = Living(record, client, incarnation);
  if (!found) return std::move(deciding).Done();
  if (!record.finished) Keeps(deciding, record, record.readers[*found], commit.kept);
  deciding.Says(CommitDone{client, commit.number, incarnation});
  return std::move(deciding).Done();
}

namespace {

// Of a process that is gone and whose state may hold what it took: what it has is frozen, as behind
// the end, and nothing waits for its answer any more.
void MayComeBack(Deciding& deciding, const IterationRecord& record, const ReaderRecord& reader,
                 const Holdings& taken) {
  // All consumers of a coordinated read wait for it anyway.
  if (!reader.reads() || record.coordinated()) return;
  deciding.Changes(ReaderEnded{reader.client, taken});
  deciding.RaiseAssigned();
}

}  // namespace

Decision OnLeave(const IterationRecord& record, Desk& desk, ClientId client,
                 Incarnation incarnation, const Leave& leave) {
  Deciding deciding(record, desk);
  auto found = Living(record, client, incarnation);
  if (found && !record.finished) {
    const ReaderRecord& reader = record.readers[*found];
    desk.present[*found] = false;
    if (record.keep == KeepPolicy::kCommitted && !Contains(reader.kept, leave.taken)) {
      MayComeBack(deciding, record, reader, leave.taken);
    } else {
      const bool keeps = record.keep == KeepPolicy::kTaken;
      if (keeps) Keeps(deciding, record, reader, leave.taken);
      deciding.Changes(ReaderGone{client, Standing::kLeft});
      Goes(deciding, record, desk, *found, keeps ? leave.taken : reader.kept);
    }
  }
  deciding.Says(LeaveDone{client, incarnation});
  return std::move(deciding).Done();
}

Decision OnReaderDead(const IterationRecord& record, Desk& desk, ClientId client) {
  Deciding deciding(record, desk);
  auto found = record.FindReader(client);
  if (!found || record.readers[*found].standing != Standing::kLiving || record.finished)
    return std::move(deciding).Done();
  const ReaderRecord& reader = record.readers[*found];
  deciding.Changes(ReaderGone{client, Standing::kDead});
  deciding.Says(Refused{client, reader.incarnation, Refusal::kDeclaredDead});
  desk.present[*found] = false;
  Goes(deciding, record, desk, *found, reader.kept);
  return std::move(deciding).Done();
}

}  // namespace penstock::protocol
