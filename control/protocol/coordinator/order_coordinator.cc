// SPDX-License-Identifier: Apache-2.0
// The dispatcher's decisions about ordered merges: which elements may be sent because readers have
// room for them, and for which consumer of a fixed order the others wait.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/protocol/coordinator/decision_builder.h"

namespace penstock::protocol {

Index SendLimitOf(const IterationRecord& record, const IterationContext& context, size_t partition,
                  const Positions& positions) {
  std::optional<Index> limit;
  for (size_t r = 0; r < record.readers.size(); ++r) {
    const ReaderRecord& reader = record.readers[r];
    if (!reader.reads()) continue;
    if (record.has_order_consumers() &&
        !positions.OffsetOf(PartitionAt(partition), reader.consumer))
      continue;
    const Index its = context.partitions[partition].acks.Of(r).receive_limit;
    limit = std::min(limit.value_or(its), its);
  }
  return limit.value_or(0);
}

namespace {

// Allows workers to send the elements for which readers of an ordered merge have room.
Decision RaiseSendLimits(const IterationRecord& record, IterationContext& context) {
  Decision decision;
  if (!context.ordered || record.coordinated() || record.closed) return decision;
  const Positions positions = PositionsOf(record);
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    const PartitionRecord& partition = record.partitions[p];
    if (partition.collecting()) continue;
    PartitionContext& partition_context = context.partitions[p];
    const Index limit = SendLimitOf(record, context, p, positions);
    if (limit <= partition_context.rows_allowed) continue;
    partition_context.rows_allowed = limit;
    decision.messages.push_back(
        AllowRows{partition.worker, PartitionAt(p), partition.placement, limit, std::nullopt});
  }
  return decision;
}

// For order kDeterministic: returns a text with the first consumer for which all others wait, and
// the reason; empty if they wait for none.
std::string MissingConsumer(const IterationRecord& record) {
  if (record.closed) return "";
  enum class Its : uint8_t { kNever, kGone, kActive };
  absl::InlinedVector<Its, 16> consumers(static_cast<size_t>(record.order_consumers), Its::kNever);
  for (const ReaderRecord& reader : record.readers) {
    if (reader.consumer < 0) continue;
    Its& its = consumers[static_cast<size_t>(reader.consumer)];
    its = std::max(its, reader.reads() ? Its::kActive : Its::kGone);
  }
  for (size_t c = 0; c < consumers.size(); ++c) {
    if (consumers[c] == Its::kActive) continue;
    if (consumers[c] == Its::kNever) return absl::StrCat("consumer ", c, " has not joined");
    if (HasAll(record, static_cast<int64_t>(c))) continue;
    return absl::StrCat("consumer ", c, " is gone and has not come back");
  }
  return "";
}

Decision NotifyMissingConsumer(const IterationRecord& record, IterationContext& context) {
  Decision decision;
  if (!record.has_order_consumers()) return decision;
  std::string missing = MissingConsumer(record);
  const bool resend_waits_for =
      std::exchange(context.rounds.resend_waits_for, false) && !missing.empty();
  if (missing == context.rounds.waits_for && !resend_waits_for) return decision;
  context.rounds.waits_for = std::move(missing);
  for (size_t r = 0; r < record.readers.size(); ++r) {
    const ReaderRecord& reader = record.readers[r];
    if (!reader.reads() || !context.present[r]) continue;
    decision.messages.push_back(ToClient<Agreed>{
        {.rounds = {}, .waits_for = context.rounds.waits_for}, reader.client, reader.incarnation});
  }
  return decision;
}

}  // namespace

bool HasAll(const IterationRecord& record, int64_t consumer) {
  const Positions positions = PositionsOf(record);
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    const std::optional<Index> end = record.partitions[p].end;
    if (!end) return false;
    const PartitionId id = PartitionAt(p);
    const IndexSet rows = positions.RowsIn(IndexSet::Of(0, *end), id, consumer);
    Together had(record, positions, id);
    for (const ReaderRecord& reader : record.readers) {
      had.Add(reader, Of(reader.committed, id));
      had.Add(reader, Of(reader.final, id));
    }
    if (!positions.RowsIn(std::move(had).Indices(), id, consumer).Contains(rows)) return false;
  }
  return true;
}

Decision ArrangeOrder(const IterationRecord& record, IterationContext& context) {
  Decision raised = RaiseSendLimits(record, context);
  return raised.empty() ? NotifyMissingConsumer(record, context) : std::move(raised);
}

void OnReceiveLimit(const IterationRecord& record, IterationContext& context, ClientId client,
                    Incarnation incarnation, PartitionId partition, Index below) {
  const std::optional<size_t> found = FindActiveReader(record, client, incarnation);
  if (!found || !record.Has(partition)) return;
  context.ordered = true;
  Index& limit = context.AckAt(partition.value() - 1, *found).receive_limit;
  limit = std::max(limit, below);
}

}  // namespace penstock::protocol
