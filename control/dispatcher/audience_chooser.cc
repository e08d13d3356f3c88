// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/audience_chooser.h"

#include <optional>
#include <utility>

#include "control/dispatcher/transaction.h"
#include "control/protocol/invariant.h"

namespace penstock::control {

bool AudienceChooser::Assign(Transaction& txn, const IterationState& iteration,
                             PartitionId partition, WorkerId worker, const LinkRule& rule) {
  const protocol::IterationRecord& record = iteration.record;
  protocol::IterationContext& context = txn.GetContext(iteration.id);
  IndexSet answered = ReadingPositions(record);
  const IndexSet wanted = ChooseAudience(record, worker, rule, answered);
  const IndexSet silent = protocol::MustAnswer(record, context, partition, std::nullopt);
  if (!silent.Intersects(wanted)) {
    const auto audience = rule.reads_all() ? std::nullopt : std::optional(wanted);
    txn.Apply(iteration.id, protocol::AssignTo(record, context, partition, worker, audience));
    return true;
  }
  answered.Remove(silent);
  const IndexSet first = ChooseAudience(record, worker, rule, answered);
  if (!first.empty())
    txn.Apply(iteration.id, protocol::AssignTo(record, context, partition, worker, first));
  txn.Apply(iteration.id, protocol::ExtendAudience(record, context, partition, wanted));
  return !first.empty();
}

void AudienceChooser::Extend(Transaction& txn, const IterationState& iteration,
                             const LinkRule& rule) {
  const protocol::IterationRecord& record = iteration.record;
  protocol::IterationContext& context = txn.GetContext(iteration.id);
  const Looked now{shared_.sessions.version(), ReadingPositions(record).size(), rule.workers};
  Last& last = looked_[iteration.id];
  const bool enough = last.looked == now && context.placing_changes <= last.until;
  if (enough && !shared_.options.check_kept) return;
  const MoreReaders more = ReadersToAdd(record, context, rule);
  PENSTOCK_INVARIANT(!enough || more.of.empty());
  if (enough) return;
  for (const auto& [id, readers] : more.of)
    txn.Apply(iteration.id, protocol::ExtendAudience(record, context, id, readers));
  last = {now, context.placing_changes + static_cast<uint64_t>(more.spare)};
}

}  // namespace penstock::control
