// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/monitoring/element_counts.h"

#include <utility>
#include <variant>

#include "control/protocol/each_position.h"

namespace penstock::control {
namespace {

bool HasConsumers(const protocol::IterationRecord& record) {
  return record.coordinated() || record.has_order_consumers();
}

int64_t IntervalsOf(const IndexSet& set) {
  return static_cast<int64_t>(set.intervals().size());
}

// Adds to a set of which `total` has the size.
void AddTo(IndexSet& set, const IndexSet& added, int64_t& total) {
  if (added.empty()) return;
  total -= set.size();
  set.Add(added);
  total += set.size();
}

// Counts the partition over all readers. Returns how many sets and intervals were read.
int64_t CountAnew(const protocol::IterationRecord& record,
                  const protocol::IterationContext* context, PartitionId partition,
                  ElementCounts::Sets& to) {
  int64_t read = 1;
  if (HasConsumers(record)) {
    for (const protocol::ReaderRecord& reader : record.readers)
      read += 1 + IntervalsOf(protocol::Of(reader.committed, partition));
  }
  to.committed = protocol::CommittedIndices(record, partition);
  to.received = to.committed;
  if (context != nullptr && !record.forgotten) {
    for (const auto& [reader, ack] : context->partitions[partition.value() - 1].acks) {
      ++read;
      if (ack.reported.empty()) continue;
      to.received.Add(ack.reported);
      read += IntervalsOf(ack.reported);
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

ElementCounts::Iteration& ElementCounts::Restart(IterationId iteration,
                                                 const protocol::IterationRecord& record,
                                                 bool has_context) {
  Iteration& of = iterations_[iteration] = {};
  of.has_context = has_context;
  of.partitions.resize(record.partitions.size());
  of.stale = of.partitions.size();
  return of;
}

void ElementCounts::MakeStale(Iteration& of, PartitionId partition) {
  if (partition.value() > of.partitions.size()) return;
  if (!std::exchange(of.partitions[partition.value() - 1].stale, true)) ++of.stale;
}

void ElementCounts::MakeAllStale(Iteration& of) {
  for (Sets& sets : of.partitions) sets.stale = true;
  of.stale = of.partitions.size();
}

void ElementCounts::Begin(IterationId iteration, const protocol::IterationRecord& record) {
  Iteration& of = Restart(iteration, record, /*has_context=*/true);
  if (HasConsumers(record)) return;
  for (size_t p = 0; p < of.partitions.size(); ++p) {
    Sets& sets = of.partitions[p];
    CountAnew(record, /*context=*/nullptr, PartitionId(p + 1), sets);
    of.totals.received += sets.received.size();
    of.totals.committed += sets.committed.size();
  }
  of.stale = 0;
}

bool ElementCounts::Count(IterationId iteration, const protocol::IterationRecord& record,
                          const protocol::IterationContext* context, int64_t& room) {
  Iteration* of = Find(iteration);
  if (of == nullptr || of->has_context != (context != nullptr))
    of = &Restart(iteration, record, context != nullptr);
  while (of->stale > 0 && room > 0) {
    if (of->next >= of->partitions.size()) of->next = 0;
    Sets& sets = of->partitions[of->next++];
    if (!sets.stale) continue;
    of->totals.received -= sets.received.size();
    of->totals.committed -= sets.committed.size();
    room -= CountAnew(record, context, PartitionId(of->next), sets);
    of->totals.received += sets.received.size();
    of->totals.committed += sets.committed.size();
    --of->stale;
  }
  return of->stale == 0;
}

absl::Span<const ElementCounts::Sets> ElementCounts::Of(IterationId iteration) const {
  const auto found = iterations_.find(iteration);
  if (found == iterations_.end()) return {};
  return found->second.partitions;
}

ElementCounts::Totals ElementCounts::TotalsOf(IterationId iteration) const {
  const auto found = iterations_.find(iteration);
  return found == iterations_.end() ? Totals() : found->second.totals;
}

bool ElementCounts::AreTrue(IterationId iteration, const protocol::IterationRecord& record,
                            const protocol::IterationContext* context) const {
  const auto found = iterations_.find(iteration);
  if (found == iterations_.end()) return true;
  const Iteration& of = found->second;
  if (of.has_context != (context != nullptr)) return true;  // Count() forgets it first
  Totals totals;
  size_t stale = 0;
  for (size_t p = 0; p < of.partitions.size(); ++p) {
    const Sets& sets = of.partitions[p];
    totals.received += sets.received.size();
    totals.committed += sets.committed.size();
    if (sets.stale) {
      ++stale;
      continue;
    }
    Sets counted;
    CountAnew(record, context, PartitionId(p + 1), counted);
    if (sets != counted) return false;
  }
  return of.partitions.size() == record.partitions.size() && of.totals == totals &&
         of.stale == stale;
}

void ElementCounts::Changed(IterationId iteration, const protocol::IterationRecord& record,
                            const protocol::IterationChange& change) {
  Iteration* of = Find(iteration);
  if (of == nullptr) return;
  if (std::holds_alternative<protocol::PartitionOpened>(change)) {
    of->partitions.emplace_back().stale = false;  // nobody has elements of it
    if (record.has_order_consumers()) MakeAllStale(*of);
    return;
  }
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
    AddTo(sets.committed, committed->added, of->totals.committed);
    AddTo(sets.received, committed->added, of->totals.received);
    return;
  }
  const auto* replaced = std::get_if<protocol::ReaderReplaced>(&change);
  if (replaced != nullptr) {
    // The process before may have had elements that are not in the state of this one.
    for (const auto& [partition, set] : replaced->committed) MakeStale(*of, partition);
    protocol::ForEach(of->reported[replaced->client],
                      [&](size_t number) { MakeStale(*of, PartitionId(number)); });
    of->reported.erase(replaced->client);
    if (!HasConsumers(record)) return;
  }
  // These replace elements, or change which elements the rows of consumers are.
  if (replaced != nullptr || std::holds_alternative<protocol::IterationFinished>(change) ||
      std::holds_alternative<protocol::RemaindersPlanned>(change))
    MakeAllStale(*of);
}

void ElementCounts::Reported(IterationId iteration, const protocol::IterationRecord& record,
                             const protocol::IterationContext& context, ClientId client,
                             Incarnation incarnation, const protocol::Report& report) {
  Iteration* of = Find(iteration);
  if (of == nullptr || record.finished || !record.Has(report.partition)) return;
  if (report.partition.value() > of->partitions.size()) return;
  const auto reader = record.FindReader(client);
  if (!reader || record.readers[*reader].status != protocol::ReaderStatus::kActive ||
      record.readers[*reader].incarnation != incarnation)
    return;  // an outdated report, which the coordinator ignores
  const auto number = static_cast<Index>(report.partition.value());
  const auto before = of->reported.find(client);
  const bool has_before = before != of->reported.end() && before->second.Contains(number);
  const bool has_more = !report.delivered.empty() || !report.received.empty();
  if (!has_before && !has_more) return;
  if (!has_before) of->reported[client].Add(number);
  // Until the client is complete, its first report on a stream replaces what it has reported
  // before.
  const bool replaces =
      report.whole || !report.returned.empty() || context.readers[*reader].completes;
  if (HasConsumers(record) || (has_before && replaces)) return MakeStale(*of, report.partition);
  Sets& sets = of->partitions[report.partition.value() - 1];
  if (sets.stale) return;
  AddTo(sets.received, report.delivered, of->totals.received);
  AddTo(sets.received, report.received, of->totals.received);
}

void ElementCounts::Completed(IterationId iteration, ClientId client) {
  Iteration* of = Find(iteration);
  if (of == nullptr) return;
  const auto its = of->reported.find(client);
  if (its == of->reported.end()) return;
  protocol::ForEach(its->second, [&](size_t number) { MakeStale(*of, PartitionId(number)); });
}

}  // namespace penstock::control
