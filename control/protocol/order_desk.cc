// SPDX-License-Identifier: Apache-2.0
// What the dispatcher decides about ordered merges: what their readers have room for, and whom the
// others of a fixed order wait for.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/protocol/deciding.h"

namespace penstock::protocol {

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

namespace {

// Says what readers of an ordered merge have room for.
Decision AllowAhead(const IterationRecord& record, Desk& desk) {
  Decision decision;
  if (!desk.ordered || record.coordinated() || record.closed) return decision;
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

Decision ArrangeOrder(const IterationRecord& record, Desk& desk) {
  Decision ahead = AllowAhead(record, desk);
  return ahead.empty() ? TellWhoIsMissing(record, desk) : std::move(ahead);
}

void OnAhead(const IterationRecord& record, Desk& desk, ClientId client, Incarnation incarnation,
             PartitionId partition, Index below) {
  const std::optional<size_t> found = Living(record, client, incarnation);
  if (!found || !record.Has(partition)) return;
  desk.ordered = true;
  Index& ahead = desk.partitions[partition.value() - 1].readers[*found].ahead;
  ahead = std::max(ahead, below);
}

}  // namespace penstock::protocol
