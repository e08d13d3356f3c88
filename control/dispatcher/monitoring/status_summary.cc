// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/monitoring/status_summary.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::control {
namespace {

// Names the elements of [0, end) outside the committed sets.
void NameOwed(const protocol::IterationRecord& record, absl::Span<const ElementCounts::Sets> sets,
              IterationSummary& to) {
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    const Index end = record.partitions[p].end.value_or(0);
    IndexSet owed = IndexSet::Of(0, end);
    if (p < sets.size()) {
      if (sets[p].committed.FirstMissing() >= end) continue;
      owed.Remove(sets[p].committed);
    }
    for (const IndexSet::Interval& indices : owed.intervals()) {
      to.owes_more = to.owed.size() == kMostNamed;
      if (to.owes_more) return;
      to.owed.push_back({PartitionId(p + 1), indices});
    }
  }
}

void AddWaiting(PartitionId partition, WaitingPartitions::Some& to) {
  if (++to.count <= static_cast<int64_t>(kMostNamed)) to.first.push_back(partition);
}

WaitingPartitions FindWaiting(const protocol::IterationRecord& record,
                              const protocol::IterationContext* context) {
  WaitingPartitions waiting;
  if (context != nullptr) waiting.assignable = protocol::Assignable(record, *context);
  for (size_t p = 0; p < record.partitions.size(); ++p) {
    if (record.partitions[p].worker) continue;
    const PartitionId partition(p + 1);
    AddWaiting(partition, waiting.IsAssignable(partition) ? waiting.for_room : waiting.for_readers);
  }
  return waiting;
}

// Returns whether all partitions have workers, or need none.
bool NoneWaits(const State& state, const IterationState& iteration) {
  const protocol::IterationRecord& record = iteration.record;
  return record.closed ||
         (state.GoesOn(iteration) &&
          state.placed.CountOf(iteration.id) == static_cast<int64_t>(record.partitions.size()));
}

std::string NumbersOf(const WaitingPartitions::Some& waiting) {
  const auto more = waiting.count - static_cast<int64_t>(waiting.first.size());
  return absl::StrCat(
      " (partition ",
      absl::StrJoin(waiting.first, ", ",
                    [](std::string* to, PartitionId id) { absl::StrAppend(to, id.value()); }),
      more > 0 ? absl::StrCat(" and ", more, " more") : "", ")");
}

}  // namespace

bool WaitingPartitions::IsAssignable(PartitionId partition) const {
  return std::ranges::binary_search(assignable, partition);
}

IterationSummary IterationSummaries::Of(const State& state, const IterationState& iteration,
                                        const protocol::IterationContext* context,
                                        const ElementCounts& counts) {
  static const auto* const kNone =
      new std::shared_ptr<const WaitingPartitions>(std::make_shared<WaitingPartitions>());
  IterationSummary summary{.elements = counts.TotalsOf(iteration.id), .waiting = *kNone};
  const protocol::IterationRecord& record = iteration.record;
  if (record.closed && !record.finished) NameOwed(record, counts.Of(iteration.id), summary);
  const bool none_waits = NoneWaits(state, iteration);
  if (none_waits || context == nullptr) {
    found_.erase(iteration.id);
    if (!none_waits)
      summary.waiting = std::make_shared<const WaitingPartitions>(FindWaiting(record, context));
    return summary;
  }
  Found& found = found_[iteration.id];
  if (found.waiting == nullptr || found.placing_changes != context->placing_changes) {
    found = {context->placing_changes,
             std::make_shared<const WaitingPartitions>(FindWaiting(record, context))};
  }
  summary.waiting = found.waiting;
  return summary;
}

void IterationSummaries::ForgetOld(const State& state) {
  absl::erase_if(found_,
                 [&](const auto& entry) { return state.FindIteration(entry.first) == nullptr; });
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

std::string WaitsText(const WaitingPartitions& waiting, const std::string& room) {
  std::vector<std::string> parts;
  if (waiting.for_room.count > 0) parts.push_back(absl::StrCat(room, NumbersOf(waiting.for_room)));
  if (waiting.for_readers.count > 0)
    parts.push_back(absl::StrCat(kWaitsForReaders, NumbersOf(waiting.for_readers)));
  std::ranges::sort(parts);
  return absl::StrJoin(parts, ", ");
}

}  // namespace penstock::control
