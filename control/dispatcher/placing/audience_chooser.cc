// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/placing/audience_chooser.h"

#include <algorithm>
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
  const auto last = looked_.find(iteration.id);
  const bool enough = last != looked_.end() && AllHaveEnough(last->second, context, rule);
  if (enough && (check_kept_ == nullptr || !check_kept_())) return;
  const MoreReaders more = ReadersToAdd(record, context, rule);
  PENSTOCK_INVARIANT(!enough || more.of.empty());
  if (enough) return;
  ++looks_;
  for (const auto& [partition, readers] : more.of)
    apply(protocol::ExtendAudience(record, context, partition, readers));
  looked_[iteration.id] = {context.reader_changes, ReadingPositions(record).size(), rule,
                           more.counted,
                           context.placing_changes + static_cast<uint64_t>(more.spare)};
}

}  // namespace penstock::control
