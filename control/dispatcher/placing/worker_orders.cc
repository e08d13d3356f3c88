// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/placing/worker_orders.h"

#include <algorithm>

#include "control/protocol/invariant.h"

namespace penstock::control {

const WorkerOrder* WorkerOrders::Of(const IterationState& iteration,
                                    const protocol::IterationContext& context) {
  const size_t workers = usable_.all().size();
  if (iteration.record.partitions.size() * kWorkersPerPartition < workers) {
    Forget(iteration.id);
    return nullptr;
  }
  Kept& kept = kept_[iteration.id];
  const auto usable = usable_.changes().After(kept.usable_seen);
  const auto placed = state_.placed.changes().After(kept.placed_seen);
  const PartitionCounts counts(state_, iteration, context);
  const auto put_all = [&](WorkerOrder& order) {
    for (const UsableWorker& worker : usable_.all()) Put(order, counts, worker.id);
  };
  if (!kept.is_made || !usable || !placed || usable->size() + placed->size() > workers) {
    kept.order = WorkerOrder();
    put_all(kept.order);
  } else {
    for (const WorkerId worker : *usable) Put(kept.order, counts, worker);
    for (const WorkerId worker : *placed) Put(kept.order, counts, worker);
    for (const WorkerId worker : kept.ended) Put(kept.order, counts, worker);
  }
  kept.usable_seen = usable_.changes().count();
  kept.placed_seen = state_.placed.changes().count();
  kept.ended.clear();
  kept.is_made = true;
  if (checks_kept()) {
    WorkerOrder computed;
    put_all(computed);
    PENSTOCK_INVARIANT(kept.order == computed);
  }
  return &kept.order;
}

void WorkerOrders::NoteEnded(IterationId iteration, WorkerId worker) {
  const auto kept = kept_.find(iteration);
  if (kept != kept_.end()) kept->second.ended.insert(worker);
}

void WorkerOrders::Put(WorkerOrder& order, const PartitionCounts& counts, WorkerId worker) const {
  if (const UsableWorker* usable = usable_.Find(worker); usable != nullptr) {
    order.Put(worker, LoadOf(counts, *usable));
  } else {
    order.Remove(worker);
  }
}

}  // namespace penstock::control
