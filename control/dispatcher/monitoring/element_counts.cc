// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/monitoring/element_counts.h"

#include <utility>
#include <variant>

namespace penstock::control {
namespace {

bool HasConsumers(const protocol::IterationRecord& record) {
  return record.coordinated() || record.has_order_consumers();
}

int64_t IntervalsOf(const IndexSet& set) {
  return static_cast<int64_t>(set.intervals().size());
}

// Counts the partition over all readers. Returns how many sets and intervals were read.
int64_t CountAnew(const protocol::IterationRecord& record,
                  const protocol::IterationContext* context, PartitionId partition,
                  ElementCounts::Sets& to) {
  int64_t read = 1 + static_cast<int64_t>(record.readers.size());
  for (const protocol::ReaderRecord& reader : record.readers)
    read += IntervalsOf(protocol::Of(reader.committed, partition));
  to.committed = protocol::CommittedIndices(record, partition);
  to.received = to.committed;
  if (context != nullptr) {
    for (const auto& [reader, ack] : context->partitions[partition.value() - 1].acks) {
      to.received.Add(ack.reported);
      read += 1 + IntervalsOf(ack.reported);
    }
  }
  to.stale = false;
  return read;
}

}  // namespace

ElementCounts::Iteration* ElementCounts::Find(IterationId iteration) {
  const auto found = iterations_.find(iteration);
  return found == iterations_.end() ? nullptr : &found->second;
}

void ElementCounts::MakeStale(Iteration& of, PartitionId partition) {
  if (partition.value() > of.partitions.size()) return;
  if (!std::exchange(of.partitions[partition.value() - 1].stale, true)) ++of.stale;
}

void ElementCounts::MakeAllStale(Iteration& of) {
  for (Sets& sets : of.partitions) sets.stale = true;
  of.stale = of.partitions.size();
}

bool ElementCounts::Count(IterationId iteration, const protocol::IterationRecord& record,
                          const protocol::IterationContext* context, int64_t& room) {
  Iteration& of = iterations_[iteration];
  if (std::exchange(of.has_context, context != nullptr) != (context != nullptr)) MakeAllStale(of);
  of.stale += record.partitions.size() - of.partitions.size();  // partitions are never removed
  of.partitions.resize(record.partitions.size());
  while (of.stale > 0 && room > 0) {
    if (of.next >= of.partitions.size()) of.next = 0;
    Sets& sets = of.partitions[of.next++];
    if (!sets.stale) continue;
    room -= CountAnew(record, context, PartitionId(of.next), sets);
    --of.stale;
  }
  return of.stale == 0;
}

absl::Span<const ElementCounts::Sets> ElementCounts::Of(IterationId iteration) const {
  const auto found = iterations_.find(iteration);
  if (found == iterations_.end()) return {};
  return found->second.partitions;
}

void ElementCounts::Changed(IterationId iteration, const protocol::IterationRecord& record,
                            const protocol::IterationChange& change) {
  Iteration* of = Find(iteration);
  if (of == nullptr) return;
  if (const auto* committed = std::get_if<protocol::ReaderCommitted>(&change)) {
    if (committed->partition.value() > of->partitions.size()) return;
    Sets& sets = of->partitions[committed->partition.value() - 1];
    if (HasConsumers(record)) {
      const auto reader = record.FindReader(committed->client);
      const bool moves_order =
          record.has_order_consumers() && reader && record.readers[*reader].consumer < 0;
      return moves_order ? MakeAllStale(*of) : MakeStale(*of, committed->partition);
    }
    if (sets.stale) return;
    sets.committed.Add(committed->added);
    sets.received.Add(committed->added);
    return;
  }
  // These replace a reader's elements, or change which elements the rows of consumers are.
  if (std::holds_alternative<protocol::ReaderReplaced>(change) ||
      std::holds_alternative<protocol::IterationFinished>(change) ||
      std::holds_alternative<protocol::RemaindersPlanned>(change) ||
      (std::holds_alternative<protocol::PartitionOpened>(change) && record.has_order_consumers()))
    MakeAllStale(*of);
}

void ElementCounts::ReportsComplete(IterationId iteration) {
  if (Iteration* of = Find(iteration)) MakeAllStale(*of);
}

void ElementCounts::Reported(IterationId iteration, const protocol::IterationRecord& record,
                             ClientId client, Incarnation incarnation,
                             const protocol::Report& report) {
  Iteration* of = Find(iteration);
  if (of == nullptr || record.finished || !record.Has(report.partition)) return;
  if (report.partition.value() > of->partitions.size()) return;
  const auto reader = record.FindReader(client);
  if (!reader || record.readers[*reader].status != protocol::ReaderStatus::kActive ||
      record.readers[*reader].incarnation != incarnation)
    return;  // an outdated report, which the coordinator ignores
  if (HasConsumers(record) || report.whole || !report.returned.empty())
    return MakeStale(*of, report.partition);
  Sets& sets = of->partitions[report.partition.value() - 1];
  if (sets.stale) return;
  sets.received.Add(report.delivered);
  sets.received.Add(report.received);
}

}  // namespace penstock::control
