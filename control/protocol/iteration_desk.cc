// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/iteration_desk.h"

#include <algorithm>
#include <utility>

#include "control/protocol/deciding.h"
#include "control/protocol/rounds_room.h"

namespace penstock::protocol {

Desk OpenDesk(const IterationRecord& record, Broken broken) {
  Desk desk;
  desk.broken = broken;
  desk.present.resize(record.readers.size(), false);
  desk.waits.resize(record.readers.size(), false);
  desk.partitions.resize(record.partitions.size());
  for (PartitionDesk& partition : desk.partitions) partition.readers.resize(record.readers.size());
  return desk;
}

// Rule 9. What waits for a worker may have been assigned since under its number, and a reader need
// not have heard of that.
Decision OnDispatcherStarts(const IterationRecord& record, Desk& desk) {
  Deciding deciding(record, desk);
  if (record.closed || desk.broken == Broken::kAssignAgainAtStart)
    return std::move(deciding).Done();
  for (size_t p = 0; p < record.partitions.size(); ++p)
    if (record.partitions[p].collecting()) deciding.Raise(p);
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
    IndexSet covered = record.shared() && desk.broken != Broken::kCloseOnLanded
                           ? ClaimedOf(record, desk, p)
                           : SkipOf(record, desk, p);
    if (desk.broken == Broken::kCloseOnDeadsLanded)
      for (const Heard& heard : on_desk.readers) covered.Add(heard.has);
    if (covered.FirstMissing() < *on_desk.ended) return false;
  }
  return true;
}

// Whether a reader has something that it could give back.
bool Holds(const IterationRecord& record, const Desk& desk, size_t partition, size_t reader) {
  const Heard& heard = desk.partitions[partition].readers[reader];
  IndexSet held = heard.has;
  held.Remove(Of(record.readers[reader].kept, PartitionAt(partition)));
  held.Remove(heard.claimed);
  return !held.empty();
}

// Whether it waits, and has nothing as far as is known.
bool Starves(const IterationRecord& record, const Desk& desk, size_t reader) {
  if (!desk.waits[reader] || !desk.present[reader] || !record.readers[reader].reads()) return false;
  for (size_t p = 0; p < record.partitions.size(); ++p)
    if (Holds(record, desk, p, reader)) return false;
  return true;
}

// Rule 25. Once all was sent, what one reader waits for another may hold and not take.
Decision ShareOut(const IterationRecord& record, Desk& desk) {
  Deciding deciding(record, desk);
  if (!record.shared() || std::find(desk.waits.begin(), desk.waits.end(), true) == desk.waits.end())
    return std::move(deciding).Done();
  for (size_t p = 0; p < record.partitions.size(); ++p)
    if (record.partitions[p].collecting() || !desk.partitions[p].ended ||
        !AllHeard(record, desk, p))
      return std::move(deciding).Done();
  bool starves = false;
  for (size_t r = 0; r < record.readers.size(); ++r) starves |= Starves(record, desk, r);
  if (!starves) return std::move(deciding).Done();
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    bool held = false;
    for (size_t r = 0; r < record.readers.size(); ++r)
      held |= record.readers[r].reads() && Holds(record, desk, p, r);
    if (held) deciding.RaiseForOthers(p);
  }
  Decision decision = std::move(deciding).Done();
  if (!decision.empty()) desk.waits.assign(record.readers.size(), false);
  return decision;
}

// What a reader that is told the end has.
Holdings FinalOf(const IterationRecord& record, const Desk& desk, size_t reader) {
  Holdings final = record.readers[reader].kept;
  for (size_t p = 0; p < record.partitions.size(); ++p)
    At(final, PartitionAt(p)).Add(desk.partitions[p].readers[reader].has);
  return final;
}

}  // namespace

Decision Consequences(const IterationRecord& record, Desk& desk) {
  if (Decision rounds = AgreeOnRounds(record, desk); !rounds.empty()) return rounds;
  if (Decision order = ArrangeOrder(record, desk); !order.empty()) return order;
  Deciding deciding(record, desk);
  if (record.finished) return std::move(deciding).Done();
  if (!record.closed) {
    if (!MayClose(record, desk)) return ShareOut(record, desk);
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
    if (record.partitions[p].collecting() &&
        ((record.at_least_once && !desk.partitions[p].gives_back) || AllHeard(record, desk, p) ||
         desk.broken == Broken::kAssignWithoutFence))
      assignable.push_back(PartitionAt(p));
  return assignable;
}

namespace {

// Pads are copies of the last element: where one is to be sent, that is made again.
void MakeForPads(const IterationRecord& record, Assign& assign) {
  const std::optional<Index> end = record.EndOf(assign.partition);
  if (!end || assign.rest->pads == 0) return;
  if (assign.skip.FirstMissing(*end) < *end + assign.rest->pads && assign.skip.Contains(*end - 1)) {
    assign.skip.Remove(IndexSet::Of(*end - 1, *end));
    assign.copied = *end - 1;
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
                .dealt = std::nullopt,
                .copied = std::nullopt};
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
    MakeForPads(record, assign);
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
