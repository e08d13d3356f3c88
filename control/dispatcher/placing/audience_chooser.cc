// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/placing/audience_chooser.h"

#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include "control/protocol/invariant.h"

namespace penstock::control {

bool AudienceChooser::Assign(const protocol::IterationRecord& record,
                             protocol::IterationContext& context, PartitionId partition,
                             WorkerId worker, const LinkRule& rule, Apply apply) {
  IndexSet answered = ReadingPositions(record);
  const IndexSet wanted = ChooseAudience(record, worker, rule, answered);
  const IndexSet silent = protocol::MustAnswer(record, context, partition, std::nullopt);
  if (!silent.Intersects(wanted)) {
    const auto audience = rule.reads_all() ? std::nullopt : std::optional(wanted);
    apply(protocol::AssignTo(record, context, partition, worker, audience));
    return true;
  }
  answered.Remove(silent);
  const IndexSet first = ChooseAudience(record, worker, rule, answered);
  if (!first.empty()) apply(protocol::AssignTo(record, context, partition, worker, first));
  apply(protocol::ExtendAudience(record, context, partition, wanted));
  return !first.empty();
}

// A change of the placing takes at most one partition from a reader, or raises what is enough by at
// most one partition. So does each step of a larger share, which also gives further workers to a
// reader that has too few.
bool AudienceChooser::AllHaveEnough(const Looked& last, const protocol::IterationContext& context,
                                    const LinkRule& rule) {
  if (last.reader_changes != context.reader_changes) return false;
  uint64_t changes = context.placing_changes;
  if (rule.share() > last.rule.share()) {
    const int64_t before = EnoughFor(last.rule, last.readers, last.counted);
    const int64_t now = EnoughFor(rule, last.readers, last.counted);
    changes += static_cast<uint64_t>(std::max<int64_t>(now - before, 1));
  }
  return changes <= last.until;
}

void AudienceChooser::Extend(const IterationState& iteration, protocol::IterationContext& context,
                             const LinkRule& rule, Apply apply) {
  const protocol::IterationRecord& record = iteration.record;
  const auto [looked, is_first] = looked_.try_emplace(iteration.id);
  Looked& before = looked->second;
  const bool enough = !is_first && AllHaveEnough(before, context, rule);
  const bool checks = check_kept_ != nullptr && check_kept_();
  if (enough && !checks) return;
  const std::vector<PartitionId> changed(before.changed.begin(), before.changed.end());
  before.changed.clear();
  before.counts.Update(record, context, changed);
  if (checks) {
    AudienceCounts computed;
    computed.Update(record, context, {});
    PENSTOCK_INVARIANT(before.counts == computed);
  }
  const MoreReaders more = ReadersToAdd(record, before.counts, rule);
  PENSTOCK_INVARIANT(!enough || more.of.empty());
  if (enough) return;
  ++looks_;
  for (const auto& [partition, readers] : more.of)
    apply(protocol::ExtendAudience(record, context, partition, readers));
  Looked& last = looked_[iteration.id];  // applying may have made the iteration end
  last.reader_changes = context.reader_changes;
  last.readers = ReadingPositions(record).size();
  last.rule = rule;
  last.counted = more.counted;
  last.until = context.placing_changes + static_cast<uint64_t>(more.spare);
}

void AudienceChooser::NoteChange(IterationId iteration, const protocol::IterationChange& change) {
  const auto looked = looked_.find(iteration);
  if (looked == looked_.end()) return;
  Looked& its = looked->second;
  if (const auto* raised = std::get_if<protocol::PlacementRaised>(&change)) {
    its.changed.insert(raised->partition);
  } else if (const auto* assigned = std::get_if<protocol::PartitionAssigned>(&change)) {
    its.changed.insert(assigned->partition);
  } else if (const auto* extended = std::get_if<protocol::AudienceExtended>(&change)) {
    its.changed.insert(extended->partition);
  } else if (std::holds_alternative<protocol::IterationClosed>(change)) {
    its.counts = AudienceCounts();  // no partition has a worker any more
  }
}

void AudienceChooser::NoteEnded(const PartitionKey& partition) {
  const auto looked = looked_.find(partition.iteration);
  if (looked != looked_.end()) looked->second.changed.insert(partition.partition);
}

}  // namespace penstock::control
