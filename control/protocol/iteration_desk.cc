// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/iteration_desk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/protocol/rounds_room.h"
#include "penstock/check.h"

namespace penstock::protocol {
namespace {

PartitionId PartitionAt(size_t position) {
  return PartitionId(position + 1);
}

// One event being decided: what all kinds of events are made of.
class Deciding {
 public:
  Deciding(const IterationRecord& record, Desk& desk) : record_(record), desk_(desk) {}

  template <class Change>
  void Changes(Change change) {
    decision_.changes.push_back(std::move(change));
  }
  template <class What>
  void Says(What message) {
    decision_.messages.push_back(std::move(message));
  }
  Decision Done() && { return std::move(decision_); }

  // The number of `partition` after this decision.
  Placement placement(size_t partition) const {
    return raised_.size() > partition && raised_[partition]
               ? Placement(record_.partitions[partition].placement.value() + 1)
               : record_.partitions[partition].placement;
  }

  // Rule 1. Readers other than `welcomed`, who learns the number from its
  // Welcome, are fenced.
  void Raise(size_t partition, ClientId welcomed = {}) {
    const PartitionRecord& now = record_.partitions[partition];
    raised_.resize(record_.partitions.size(), false);
    raised_[partition] = true;
    Changes(PlacementRaised{PartitionAt(partition), placement(partition)});
    if (now.worker) Says(Unassign{now.worker, PartitionAt(partition), now.placement});
    desk_.partitions[partition].ended.reset();
    desk_.partitions[partition].turns_allowed = 0;
    desk_.partitions[partition].rest_told = false;
    for (size_t r = 0; r < record_.readers.size(); ++r)
      if (record_.readers[r].reads() && record_.readers[r].client != welcomed) AskFor(partition, r);
  }
  // Those that are being collected need no new number: nothing was assigned
  // under this one.
  void RaiseAssigned(ClientId welcomed = {}) {
    for (size_t p = 0; p < record_.partitions.size(); ++p)
      if (!record_.partitions[p].collecting()) Raise(p, welcomed);
  }
  void Reopen(ClientId welcomed = {}) {
    Changes(IterationReopened{});
    for (size_t p = 0; p < record_.partitions.size(); ++p) Raise(p, welcomed);
  }

  void AskFor(size_t partition, size_t reader) {
    if (desk_.present[reader])
      Says(Fence{record_.readers[reader].client, PartitionAt(partition), placement(partition),
                 record_.readers[reader].incarnation});
  }

  void SaysWelcome(ClientId client, Incarnation incarnation) {
    Welcome welcome{client, incarnation, {}};
    for (size_t p = 0; p < record_.partitions.size(); ++p)
      welcome.placements.push_back({PartitionAt(p), placement(p)});
    Says(std::move(welcome));
  }

  // The reader at this position starts with nothing but what it kept, under the
  // placements it is welcomed with.
  void HearsAsNew(size_t reader, int64_t consumer) {
    desk_.rounds.unheard = true;
    if (record_.coordinated() && consumer >= 0) {
      RoundsDesk& rounds = desk_.rounds;
      rounds.consumers.resize(static_cast<size_t>(record_.rounds.consumers));
      // The others say anew where they are: one that comes back alone must not be let in
      // behind them.
      for (ConsumerDesk& other : rounds.consumers) {
        if (!record_.rounds.schedule.joined.empty()) other.said = false;
      }
      rounds.consumers[static_cast<size_t>(consumer)] = {};
      rounds.agreed.reset();
      rounds.floor.reset();
    }
    desk_.present.resize(std::max(desk_.present.size(), reader + 1), false);
    desk_.present[reader] = true;
    for (size_t p = 0; p < record_.partitions.size(); ++p) {
      auto& readers = desk_.partitions[p].readers;
      readers.resize(std::max(readers.size(), reader + 1));
      readers[reader] = {.at = placement(p), .has = {}};
    }
  }

  // Workers that have a partition serve one reader more.
  void AddToWorkers(Reader reader) {
    for (size_t p = 0; p < record_.partitions.size(); ++p) {
      const PartitionRecord& partition = record_.partitions[p];
      if (!partition.collecting())
        Says(AddReader{partition.worker, PartitionAt(p), partition.placement, reader});
    }
  }

 private:
  const IterationRecord& record_;
  Desk& desk_;
  Decision decision_;
  absl::InlinedVector<bool, 2> raised_;
};

// The living reader of that name and process.
std::optional<size_t> Living(const IterationRecord& record, ClientId client,
                             Incarnation incarnation) {
  auto found = record.FindReader(client);
  if (!found || record.readers[*found].standing != Standing::kLiving ||
      record.readers[*found].incarnation != incarnation)
    return std::nullopt;
  return found;
}

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

bool SomebodyReads(const IterationRecord& record, size_t except) {
  for (size_t r = 0; r < record.readers.size(); ++r)
    if (r != except && record.readers[r].reads()) return true;
  return false;
}

// Rule 3: what must not be sent again.
IndexSet SkipOf(const IterationRecord& record, const Desk& desk, size_t partition) {
  const PartitionId id = PartitionAt(partition);
  Together skip(record, id);
  for (size_t r = 0; r < record.readers.size(); ++r) {
    const ReaderRecord& reader = record.readers[r];
    skip.Add(reader, Of(reader.kept, id));
    if (reader.standing != Standing::kLiving) continue;
    skip.Add(reader,
             reader.told_end ? Of(reader.final, id) : desk.partitions[partition].readers[r].has);
  }
  return std::move(skip).Indices();
}

// Whether all that read have said what they have under this placement.
bool AllHeard(const IterationRecord& record, const Desk& desk, size_t partition) {
  if (record.keep == KeepPolicy::kNothing) return true;  // whatever they have
  for (size_t r = 0; r < record.readers.size(); ++r)
    if (record.readers[r].reads() &&
        desk.partitions[partition].readers[r].at != record.partitions[partition].placement)
      return false;
  return true;
}

// Whether somebody left before anybody was told the end, and what it had may yet be others'.
bool SomebodyIsAway(const IterationRecord& record) {
  return std::any_of(record.readers.begin(), record.readers.end(), [&](const ReaderRecord& reader) {
    return reader.standing == Standing::kLiving && reader.told_end &&
           !record.partitions.front().end && !Contains(reader.kept, reader.final);
  });
}

// Rule 8.
bool MayClose(const IterationRecord& record, const Desk& desk) {
  if (record.coordinated() && record.rounds.ends.empty()) return false;
  if (record.partitions.empty() || SomebodyIsAway(record)) return false;
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    const PartitionDesk& on_desk = desk.partitions[p];
    if (record.partitions[p].collecting() || !on_desk.ended || !AllHeard(record, desk, p))
      return false;
    IndexSet covered = SkipOf(record, desk, p);
    if (desk.broken == Broken::kCloseOnDeadsLanded)
      for (const Heard& heard : on_desk.readers) covered.Add(heard.has);
    if (covered.FirstMissing() < *on_desk.ended) return false;
  }
  return true;
}

// What a reader that is told the end has.
Holdings FinalOf(const IterationRecord& record, const Desk& desk, size_t reader) {
  Holdings final = record.readers[reader].kept;
  for (size_t p = 0; p < record.partitions.size(); ++p)
    At(final, PartitionAt(p)).Add(desk.partitions[p].readers[reader].has);
  return final;
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

// How many rounds a coordinated read has, once it is closed.
int64_t RoundsOf(const IterationRecord& record) {
  return record.coordinated() ? AllRounds(record.rounds.ends, record.rounds.consumers) : 0;
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
  if (!Contains(*presents.state, reader.kept)) return Refusal::kStateIsOlder;
  if (record.finished && !Contains(reader.kept, *presents.state)) return Refusal::kFinished;
  if (!living && !Contains(reader.kept, *presents.state) &&
      desk.broken != Broken::kNewerStateAfterDeath)
    return Refusal::kStateIsNewer;
  if (record.dealt() && IsTaken(record, reader.consumer, reader.client))
    return Refusal::kConsumerTaken;
  return std::nullopt;
}

}  // namespace

Desk OpenDesk(const IterationRecord& record, Broken broken) {
  Desk desk;
  desk.broken = broken;
  desk.present.resize(record.readers.size(), false);
  desk.partitions.resize(record.partitions.size());
  for (PartitionDesk& partition : desk.partitions) partition.readers.resize(record.readers.size());
  return desk;
}

// --- Clients -------------------------------------------------------------------

namespace {

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
  deciding.SaysWelcome(presents.client, presents.incarnation);
  if (record.closed) {  // a late reader gets the end at once
    deciding.Says(End{presents.client, presents.incarnation, RoundsOf(record)});
    return std::move(deciding).Done();
  }
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
  } else if (reader.standing == Standing::kLiving) {
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
  heard.has.Add(report.taken);
  if (desk.broken != Broken::kSkipWithoutLanded) heard.has.Add(report.landed);
  if (record.keep == KeepPolicy::kTaken) {
    IndexSet added = report.taken;
    added.Remove(Of(reader.kept, report.partition));
    if (!added.empty()) deciding.Changes(ReaderKept{client, report.partition, std::move(added)});
  }
  return std::move(deciding).Done();
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

// --- Workers -------------------------------------------------------------------

Decision OnWorkerRegisters(const IterationRecord& record, Desk& desk, WorkerId worker,
                           absl::Span<const Held> held) {
  Deciding deciding(record, desk);
  auto holds = [&](PartitionId partition, Placement placement) {
    return std::any_of(held.begin(), held.end(), [&](const Held& h) {
      return h.partition == partition && h.placement == placement;
    });
  };
  for (const Held& h : held)
    if (!record.Has(h.partition) || record.partition(h.partition).worker != worker ||
        record.partition(h.partition).placement != h.placement)
      deciding.Says(Unassign{worker, h.partition, h.placement});
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    const PartitionRecord& partition = record.partitions[p];
    if (partition.worker != worker) continue;
    if (!holds(PartitionAt(p), partition.placement)) {
      deciding.Raise(p);
      continue;
    }
    desk.partitions[p].turns_allowed = 0;  // what it was told may be lost
    desk.partitions[p].rest_told = false;
    for (const ReaderRecord& reader : record.readers)
      if (reader.reads())
        deciding.Says(AddReader{worker,
                                PartitionAt(p),
                                partition.placement,
                                {reader.client, reader.incarnation, reader.consumer}});
  }
  return std::move(deciding).Done();
}

Decision OnWorkerGone(const IterationRecord& record, Desk& desk, WorkerId worker) {
  Deciding deciding(record, desk);
  for (size_t p = 0; p < record.partitions.size(); ++p)
    if (worker && record.partitions[p].worker == worker) deciding.Raise(p);
  return std::move(deciding).Done();
}

Decision OnRelieve(const IterationRecord& record, Desk& desk, PartitionId partition) {
  Deciding deciding(record, desk);
  if (record.Has(partition) && !record.partition(partition).collecting())
    deciding.Raise(partition.value() - 1);
  return std::move(deciding).Done();
}

namespace {

bool IsCurrent(const IterationRecord& record, WorkerId worker, PartitionId partition,
               Placement placement) {
  return record.Has(partition) && worker && record.partition(partition).worker == worker &&
         record.partition(partition).placement == placement;
}

}  // namespace

Decision OnEnded(const IterationRecord& record, Desk& desk, WorkerId worker, PartitionId partition,
                 Placement placement, Index end) {
  if (IsCurrent(record, worker, partition, placement))
    desk.partitions[partition.value() - 1].ended = end;
  return {};
}

Decision OnAtEnd(const IterationRecord& record, Desk& desk, WorkerId worker, PartitionId partition,
                 Placement placement, Index end) {
  if (IsCurrent(record, worker, partition, placement))
    desk.partitions[partition.value() - 1].at_end = end;
  return {};
}

Decision OnBookmark(const IterationRecord& record, Desk& desk, WorkerId worker,
                    PartitionId partition, Placement placement, const Bookmark& bookmark) {
  Deciding deciding(record, desk);
  if (!IsCurrent(record, worker, partition, placement)) return std::move(deciding).Done();
  const auto& bookmarks = record.partition(partition).bookmarks;
  if (!bookmarks.empty() && bookmark.index <= bookmarks.back().index)
    return std::move(deciding).Done();  // a replay passes it again
  Index& kept_below = desk.partitions[partition.value() - 1].kept_below;
  kept_below = FirstNotKept(record, partition, kept_below);
  const Index needed = desk.broken == Broken::kRetireBelowTaken
                           ? SkipOf(record, desk, partition.value() - 1).FirstMissing()
                       : record.keep == KeepPolicy::kNothing ? bookmark.index
                                                             : kept_below;
  Index below = 0;  // the newest that lies at or below what is needed
  for (const Bookmark& b : bookmarks)
    if (b.index <= needed) below = std::max(below, b.index);
  const bool newest = bookmark.index <= needed;
  if (newest) below = bookmark.index;
  const bool retires = !bookmarks.empty() && bookmarks.front().index < below;
  // The one that stays in their place must not be thinned out in between: it is
  // the first when the new one comes, or the new one itself.
  if (retires && !newest) deciding.Changes(BookmarksRetired{partition, below});
  deciding.Changes(BookmarkKept{partition, bookmark});
  if (retires && newest) deciding.Changes(BookmarksRetired{partition, below});
  return std::move(deciding).Done();
}

// --- After each of these ---------------------------------------------------------

namespace {

// So far, in indices, may a partition of an ordered merge send, in the room of all that read it.
Index AheadOf(const IterationRecord& record, const Desk& desk, size_t partition,
              const Positions& positions) {
  std::optional<Index> ahead;
  for (size_t r = 0; r < record.readers.size(); ++r) {
    const ReaderRecord& reader = record.readers[r];
    if (!reader.reads()) continue;
    if (record.dealt() && !positions.OffsetOf(PartitionAt(partition), reader.consumer)) continue;
    const Index its = desk.partitions[partition].readers[r].ahead;
    ahead = std::min(ahead.value_or(its), its);
  }
  return ahead.value_or(0);
}

// Says what readers of an ordered merge have room for.
Decision AllowAhead(const IterationRecord& record, Desk& desk) {
  Decision decision;
  if (record.coordinated() || record.closed) return decision;
  const Positions positions = PositionsOf(record);
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    const PartitionRecord& partition = record.partitions[p];
    if (partition.collecting()) continue;
    PartitionDesk& on_desk = desk.partitions[p];
    const Index ahead = AheadOf(record, desk, p, positions);
    if (ahead <= on_desk.turns_allowed) continue;
    on_desk.turns_allowed = ahead;
    decision.messages.push_back(
        AllowTurns{partition.worker, PartitionAt(p), partition.placement, ahead, std::nullopt});
  }
  return decision;
}

// Whether all that is the consumer's is kept, or at one that was told the end; nobody knows before
// all partitions have ended.
bool HasAll(const IterationRecord& record, int64_t consumer) {
  const Positions positions = PositionsOf(record);
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    const std::optional<Index> end = record.partitions[p].end;
    if (!end) return false;
    const PartitionId id = PartitionAt(p);
    const IndexSet turns = positions.TurnsIn(IndexSet::Of(0, *end), id, consumer);
    Together had(record, id);
    for (const ReaderRecord& reader : record.readers) {
      had.Add(reader, Of(reader.kept, id));
      had.Add(reader, Of(reader.final, id));
    }
    if (!positions.TurnsIn(std::move(had).Indices(), id, consumer).Contains(turns)) return false;
  }
  return true;
}

// Of order kDeterministic: the first consumer that all wait for.
std::string MissingConsumer(const IterationRecord& record) {
  if (record.closed) return "";
  enum class Its : uint8_t { kNever, kGone, kLiving };
  absl::InlinedVector<Its, 16> consumers(static_cast<size_t>(record.dealt_to), Its::kNever);
  for (const ReaderRecord& reader : record.readers) {
    if (reader.consumer < 0) continue;
    Its& its = consumers[static_cast<size_t>(reader.consumer)];
    its = std::max(its, reader.reads() ? Its::kLiving : Its::kGone);
  }
  for (size_t c = 0; c < consumers.size(); ++c) {
    if (consumers[c] == Its::kLiving) continue;
    if (consumers[c] == Its::kNever) return absl::StrCat("consumer ", c, " has not joined");
    if (HasAll(record, static_cast<int64_t>(c))) continue;
    return absl::StrCat("consumer ", c, " is gone and has not come back");
  }
  return "";
}

Decision TellWhoIsMissing(const IterationRecord& record, Desk& desk) {
  Decision decision;
  if (!record.dealt()) return decision;
  std::string missing = MissingConsumer(record);
  const bool unheard = std::exchange(desk.rounds.unheard, false) && !missing.empty();
  if (missing == desk.rounds.waits_for && !unheard) return decision;
  desk.rounds.waits_for = std::move(missing);
  for (size_t r = 0; r < record.readers.size(); ++r) {
    const ReaderRecord& reader = record.readers[r];
    if (!reader.reads() || !desk.present[r]) continue;
    decision.messages.push_back(Agreed{.client = reader.client,
                                       .incarnation = reader.incarnation,
                                       .rounds = {},
                                       .waits_for = desk.rounds.waits_for});
  }
  return decision;
}

}  // namespace

void OnAhead(const IterationRecord& record, Desk& desk, ClientId client, Incarnation incarnation,
             PartitionId partition, Index below) {
  const std::optional<size_t> found = Living(record, client, incarnation);
  if (!found || !record.Has(partition)) return;
  Index& ahead = desk.partitions[partition.value() - 1].readers[*found].ahead;
  ahead = std::max(ahead, below);
}

Decision Consequences(const IterationRecord& record, Desk& desk) {
  if (Decision rounds = AgreeOnRounds(record, desk); !rounds.empty()) return rounds;
  if (Decision ahead = AllowAhead(record, desk); !ahead.empty()) return ahead;
  if (Decision missing = TellWhoIsMissing(record, desk); !missing.empty()) return missing;
  Deciding deciding(record, desk);
  if (record.finished) return std::move(deciding).Done();
  if (!record.closed) {
    if (!MayClose(record, desk)) return std::move(deciding).Done();
    IterationClosed closed;
    for (size_t p = 0; p < record.partitions.size(); ++p) {
      const PartitionRecord& partition = record.partitions[p];
      closed.ends.push_back(*desk.partitions[p].ended);
      deciding.Says(Unassign{partition.worker, PartitionAt(p), partition.placement});
    }
    deciding.Changes(std::move(closed));
    return std::move(deciding).Done();
  }
  // Rule 13.
  for (size_t r = 0; r < record.readers.size(); ++r) {
    if (!record.readers[r].reads() || !desk.present[r]) continue;
    bool heard = true;
    for (size_t p = 0; p < record.partitions.size(); ++p)
      heard &= desk.partitions[p].readers[r].at == record.partitions[p].placement;
    if (!heard) continue;
    deciding.Changes(ReaderEnded{record.readers[r].client, FinalOf(record, desk, r)});
    deciding.Says(End{record.readers[r].client, record.readers[r].incarnation, RoundsOf(record)});
  }
  Decision told = std::move(deciding).Done();
  if (!told.empty() || SomebodyReads(record, record.readers.size())) return told;
  for (size_t p = 0; p < record.partitions.size(); ++p)
    if (!Owed(record, PartitionAt(p)).empty()) return told;
  told.changes.push_back(IterationFinished{});
  return told;
}

// --- Placing -------------------------------------------------------------------

Decision OpenPartition(const IterationRecord& record, Desk& desk) {
  Deciding deciding(record, desk);
  if (record.closed || !record.rounds.ends.empty()) return std::move(deciding).Done();
  deciding.Changes(PartitionOpened{PartitionAt(record.partitions.size())});
  PartitionDesk& opened = desk.partitions.emplace_back();
  opened.readers.resize(record.readers.size(), {.at = Placement(1), .has = {}});
  return std::move(deciding).Done();
}

std::vector<PartitionId> Assignable(const IterationRecord& record, const Desk& desk) {
  std::vector<PartitionId> assignable;
  if (record.closed || !SomebodyReads(record, record.readers.size())) return assignable;
  for (size_t p = 0; p < record.partitions.size(); ++p)
    if (record.partitions[p].collecting() && (record.at_least_once || AllHeard(record, desk, p) ||
                                              desk.broken == Broken::kAssignWithoutFence))
      assignable.push_back(PartitionAt(p));
  return assignable;
}

namespace {

// Pads are copies of the last element: where one is to be sent, that is sent again,
// and dropped by whoever has it.
void SendForPads(const IterationRecord& record, Assign& assign) {
  const std::optional<Index> end = record.EndOf(assign.partition);
  if (!end || assign.rest->pads == 0) return;
  if (assign.skip.FirstMissing(*end) < *end + assign.rest->pads) {
    assign.skip.Remove(IndexSet::Of(*end - 1, *end));
  }
}

}  // namespace

Decision AssignTo(const IterationRecord& record, Desk& desk, PartitionId partition,
                  WorkerId worker) {
  Deciding deciding(record, desk);
  const PartitionRecord& placed = record.partition(partition);
  Assign assign{.worker = worker,
                .partition = partition,
                .placement = placed.placement,
                .skip = SkipOf(record, desk, partition.value() - 1),
                .bookmark = std::nullopt,
                .readers = {},
                .turns = 0,
                .rest = std::nullopt,
                .dealt = std::nullopt};
  PartitionDesk& on_desk = desk.partitions[partition.value() - 1];
  if (!record.coordinated()) {
    const Positions positions = PositionsOf(record);
    assign.turns = on_desk.turns_allowed = AheadOf(record, desk, partition.value() - 1, positions);
    if (record.dealt()) assign.dealt = positions;
  } else {
    // Before all consumers have said where they are, AllowTurns tells.
    if (desk.rounds.agreed || record.rounds.schedule.joined.empty())
      assign.turns = TurnsWithinRoom(record, desk)[partition.value() - 1];
    if (record.EndOf(partition)) assign.rest = record.RestsOf(partition);
    on_desk.turns_allowed = 0;
    NoteAllowed(assign.turns, on_desk);
    on_desk.rest_told = assign.rest.has_value();
    SendForPads(record, assign);
  }
  for (const Bookmark& bookmark : placed.bookmarks)
    if (bookmark.index <= assign.skip.FirstMissing() || record.keep == KeepPolicy::kNothing ||
        desk.broken == Broken::kNewestBookmark)
      assign.bookmark = bookmark;
  for (const ReaderRecord& reader : record.readers)
    if (reader.reads())
      assign.readers.push_back({reader.client, reader.incarnation, reader.consumer});
  deciding.Changes(PartitionAssigned{partition, placed.placement, worker});
  deciding.Says(std::move(assign));
  return std::move(deciding).Done();
}

Decision GiveUp(const IterationRecord& record, Desk& desk) {
  Deciding deciding(record, desk);
  if (!record.closed || record.finished) return std::move(deciding).Done();
  for (const ReaderRecord& reader : record.readers)
    if (reader.reads()) deciding.Says(End{reader.client, reader.incarnation, RoundsOf(record)});
  deciding.Changes(IterationFinished{});
  return std::move(deciding).Done();
}

}  // namespace penstock::protocol
