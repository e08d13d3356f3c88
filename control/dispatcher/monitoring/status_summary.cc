// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/monitoring/status_summary.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::control {
namespace {

// Adds the elements of [0, end) outside `committed`.
void AddOwed(PartitionId partition, Index end, const IndexSet& committed, IterationSummary& to) {
  if (committed.FirstMissing() >= end || to.owes_more) return;
  IndexSet owed = IndexSet::Of(0, end);
  owed.Remove(committed);
  for (const IndexSet::Interval& indices : owed.intervals()) {
    to.owes_more = to.owed.size() == kMostNamed;
    if (to.owes_more) return;
    to.owed.push_back({partition, indices});
  }
}

void AddWaiting(PartitionId partition, IterationSummary::Waiting& to) {
  if (++to.count <= static_cast<int64_t>(kMostNamed)) to.first.push_back(partition);
}

IterationSummary SummaryOf(const IterationState& iteration,
                           const protocol::IterationContext* context, const ElementCounts& counts) {
  const protocol::IterationRecord& record = iteration.record;
  IterationSummary summary;
  const auto waits = [&](const protocol::PartitionRecord& partition) {
    return !record.closed && !partition.worker;
  };
  if (context != nullptr && std::ranges::any_of(record.partitions, waits))
    summary.assignable = protocol::Assignable(record, *context);
  const absl::Span<const ElementCounts::Sets> sets_of = counts.Of(iteration.id);
  const ElementCounts::Sets not_counted;
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    const PartitionId partition(p + 1);
    const ElementCounts::Sets& sets = p < sets_of.size() ? sets_of[p] : not_counted;
    summary.received += sets.received.size();
    summary.committed += sets.committed.size();
    if (waits(record.partitions[p])) {
      AddWaiting(partition,
                 summary.IsAssignable(partition) ? summary.for_room : summary.for_readers);
    }
    if (record.closed && !record.finished)
      AddOwed(partition, record.partitions[p].end.value_or(0), sets.committed, summary);
  }
  return summary;
}

std::string NumbersOf(const IterationSummary::Waiting& waiting) {
  const auto more = waiting.count - static_cast<int64_t>(waiting.first.size());
  return absl::StrCat(
      " (partition ",
      absl::StrJoin(waiting.first, ", ",
                    [](std::string* to, PartitionId id) { absl::StrAppend(to, id.value()); }),
      more > 0 ? absl::StrCat(" and ", more, " more") : "", ")");
}

}  // namespace

bool IterationSummary::IsAssignable(PartitionId partition) const {
  return std::ranges::binary_search(assignable, partition);
}

StatusSummary Summarise(const State& state,
                        const std::map<IterationId, protocol::IterationContext>& contexts,
                        const ElementCounts& counts, int64_t sessions, absl::Time now) {
  StatusSummary summary{.made = now,
                        .objects = sessions + static_cast<int64_t>(state.workers.size()),
                        .permits = 0,
                        .partitions_on = state.PartitionsByWorker(),
                        .iterations = {}};
  for (const auto& [id, worker] : state.workers) summary.permits += std::max(worker.permits, 1);
  for (const auto& [id, iteration] : state.iterations) {
    const auto context = contexts.find(id);
    summary.objects += static_cast<int64_t>(iteration.record.partitions.size());
    summary.iterations.emplace(
        id, SummaryOf(iteration, context == contexts.end() ? nullptr : &context->second, counts));
  }
  return summary;
}

std::string OwedText(const IterationSummary& summary) {
  std::string text;
  PartitionId last;
  for (const IterationSummary::Owed& owed : summary.owed) {
    if (owed.partition != last) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", "partition ", owed.partition.value());
      last = owed.partition;
    }
    absl::StrAppend(&text, " [", owed.indices.begin, ",", owed.indices.end, ")");
  }
  if (summary.owes_more) absl::StrAppend(&text, " and more");
  return text;
}

std::string WaitsText(const IterationSummary& summary, const std::string& room) {
  std::vector<std::string> parts;
  if (summary.for_room.count > 0) parts.push_back(absl::StrCat(room, NumbersOf(summary.for_room)));
  if (summary.for_readers.count > 0)
    parts.push_back(absl::StrCat(kWaitsForReaders, NumbersOf(summary.for_readers)));
  std::ranges::sort(parts);
  return absl::StrJoin(parts, ", ");
}

}  // namespace penstock::control
