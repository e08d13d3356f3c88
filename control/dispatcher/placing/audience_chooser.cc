// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/placing/audience_chooser.h"

#include <optional>

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

void AudienceChooser::Extend(const IterationState& iteration, protocol::IterationContext& context,
                             const LinkRule& rule, uint64_t sessions, Apply apply) {
  const protocol::IterationRecord& record = iteration.record;
  const Looked now{sessions, ReadingPositions(record).size(), rule.workers};
  Last& last = looked_[iteration.id];
  const bool enough = last.looked == now && context.placing_changes <= last.until;
  if (enough && (check_kept_ == nullptr || !check_kept_())) return;
  const MoreReaders more = ReadersToAdd(record, context, rule);
  PENSTOCK_INVARIANT(!enough || more.of.empty());
  if (enough) return;
  for (const auto& [partition, readers] : more.of)
    apply(protocol::ExtendAudience(record, context, partition, readers));
  last = {now, context.placing_changes + static_cast<uint64_t>(more.spare)};
}

}  // namespace penstock::control
