// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/iteration_end.h"

#include "control/dispatcher/messages/peer_messages.h"
#include "control/dispatcher/transaction.h"

namespace penstock::control {

void IterationEnd::TakeFromWorkers() {
  for (size_t p = 0; p < iteration_.record.partitions.size(); ++p) {
    const protocol::PartitionRecord& partition = iteration_.record.partitions[p];
    if (!partition.worker) continue;
    parts_.txn.Send(partition.worker, Unassign{PlacedBy(parts_.shared.state, iteration_.id,
                                                        PartitionId(p + 1), partition.placement)});
  }
}

void IterationEnd::CloseSessions(const absl::Status& reason) {
  for (const auto& peer : parts_.shared.SessionsOf(iteration_.id)) parts_.txn.Close(peer, reason);
  ForgetLeases();
}

void IterationEnd::Fail(const absl::Status& reason) {
  TakeFromWorkers();
  parts_.txn.Apply(IterationFailed{iteration_.id, reason});
  CloseSessions(reason);
}

void IterationEnd::Forget() {
  ForgetLeases();
  parts_.contexts.erase(iteration_.id);
  parts_.txn.counts().Forget(iteration_.id);
  parts_.txn.membership().Forget(iteration_.id);
  parts_.links.Forget(iteration_.id);
  parts_.placer.Forget(iteration_.id);
}

void IterationEnd::ForgetLeases() {
  for (const protocol::ReaderRecord& reader : iteration_.record.readers)
    parts_.sessions.ForgetLease({iteration_.id, reader.client});
}

}  // namespace penstock::control
