// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/deciding.h"

#include <algorithm>
#include <utility>

namespace penstock::protocol {

Placement Deciding::placement(size_t partition) const {
  return raised_.size() > partition && raised_[partition]
             ? Placement(record_.partitions[partition].placement.value() + 1)
             : record_.partitions[partition].placement;
}

void Deciding::RaiseForOthers(size_t partition) {
  desk_.partitions[partition].gives_back = true;
  RaiseAndAsk(partition, {});
}

void Deciding::Raise(size_t partition, ClientId welcomed) {
  desk_.partitions[partition].gives_back = false;
  RaiseAndAsk(partition, welcomed);
}

void Deciding::RaiseAndAsk(size_t partition, ClientId welcomed) {
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

void Deciding::RaiseAssigned(ClientId welcomed) {
  for (size_t p = 0; p < record_.partitions.size(); ++p)
    if (!record_.partitions[p].collecting()) Raise(p, welcomed);
}

void Deciding::Reopen(ClientId welcomed) {
  Changes(IterationReopened{});
  for (size_t p = 0; p < record_.partitions.size(); ++p) Raise(p, welcomed);
}

void Deciding::AskFor(size_t partition, size_t reader) {
  if (desk_.present[reader])
    Says(Fence{record_.readers[reader].client, PartitionAt(partition), placement(partition),
               record_.readers[reader].incarnation, desk_.partitions[partition].gives_back});
}

void Deciding::SaysWelcome(ClientId client, Incarnation incarnation) {
  Welcome welcome{client, incarnation, {}};
  for (size_t p = 0; p < record_.partitions.size(); ++p)
    welcome.placements.push_back({PartitionAt(p), placement(p)});
  Says(std::move(welcome));
}

void Deciding::HearsAsNew(size_t reader, int64_t consumer) {
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
  desk_.waits.resize(desk_.present.size(), false);
  desk_.waits[reader] = false;
  for (size_t p = 0; p < record_.partitions.size(); ++p) {
    auto& readers = desk_.partitions[p].readers;
    readers.resize(std::max(readers.size(), reader + 1));
    readers[reader] = {.at = placement(p), .has = {}};
  }
}

void Deciding::AddToWorkers(Reader reader) {
  for (size_t p = 0; p < record_.partitions.size(); ++p) {
    const PartitionRecord& partition = record_.partitions[p];
    if (!partition.collecting())
      Says(AddReader{partition.worker, PartitionAt(p), partition.placement, reader});
  }
}

std::optional<size_t> Living(const IterationRecord& record, ClientId client,
                             Incarnation incarnation) {
  auto found = record.FindReader(client);
  if (!found || record.readers[*found].standing != Standing::kLiving ||
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

// What is kept, and of the living what they had when they were told the end, or else `heard`.
IndexSet Had(const IterationRecord& record, const Desk& desk, size_t partition,
             IndexSet Heard::*heard) {
  const PartitionId id = PartitionAt(partition);
  Together had(record, id);
  for (size_t r = 0; r < record.readers.size(); ++r) {
    const ReaderRecord& reader = record.readers[r];
    had.Add(reader, Of(reader.kept, id));
    if (reader.standing != Standing::kLiving) continue;
    had.Add(reader,
            reader.told_end ? Of(reader.final, id) : desk.partitions[partition].readers[r].*heard);
  }
  return std::move(had).Indices();
}

}  // namespace

IndexSet ClaimedOf(const IterationRecord& record, const Desk& desk, size_t partition) {
  return Had(record, desk, partition, &Heard::claimed);
}

IndexSet SkipOf(const IterationRecord& record, const Desk& desk, size_t partition) {
  return Had(record, desk, partition, &Heard::has);
}

bool AllHeard(const IterationRecord& record, const Desk& desk, size_t partition) {
  if (record.keep == KeepPolicy::kNothing) return true;  // whatever they have
  for (size_t r = 0; r < record.readers.size(); ++r)
    if (record.readers[r].reads() &&
        desk.partitions[partition].readers[r].at != record.partitions[partition].placement)
      return false;
  return true;
}

int64_t RoundsOf(const IterationRecord& record) {
  return record.coordinated() ? AllRounds(record.rounds.ends, record.rounds.consumers) : 0;
}

}  // namespace penstock::protocol
