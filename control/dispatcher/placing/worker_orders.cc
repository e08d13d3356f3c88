// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/placing/worker_orders.h"

#include <algorithm>

#include "control/protocol/invariant.h"

namespace penstock::control {

const WorkerOrder& WorkerOrders::Of(const IterationState& iteration,
                                    const protocol::IterationContext& context, size_t avoided) {
  const PartitionCounts counts(state_, iteration, context);
  const auto of = [&](WorkerId worker) { return counts.OfIteration(worker); };
  const auto& partitions = iteration.record.partitions;
  if (partitions.size() * kWorkersPerPartition >= usable_.all().size()) {
    Kept& kept = kept_[iteration.id];
    Update(kept, of);
    return kept.order;
  }
  Forget(iteration.id);
  Update(idle_, [](WorkerId) { return 0; });
  few_ = WorkerOrder();
  for (const protocol::PartitionRecord& partition : partitions)
    if (partition.worker) Put(few_, partition.worker, of(partition.worker));
  size_t others = 0;
  for (const auto& [with_one_more, of_all, worker] : idle_.order.places()) {
    if (few_.contains(worker)) continue;
    Put(few_, worker, of(worker));
    if (++others > avoided) break;
  }
  if (checks_kept()) {
    const WorkerOrder all = Computed(of);
    PENSTOCK_INVARIANT(few_.overloaded() == all.overloaded());
    PENSTOCK_INVARIANT(few_.empty() ? all.empty()
                                    : *few_.places().begin() == *all.places().begin());
  }
  return few_;
}

void WorkerOrders::Update(Kept& kept, PartitionsOf of) const {
  const auto usable = usable_.changes().After(kept.usable_seen);
  const auto placed = state_.placed.changes().After(kept.placed_seen);
  if (!kept.is_made || !usable || !placed ||
      usable->size() + placed->size() > usable_.all().size()) {
    kept.order = Computed(of);
  } else {
    for (const WorkerId worker : *usable) Put(kept.order, worker, of(worker));
    for (const WorkerId worker : *placed) Put(kept.order, worker, of(worker));
    for (const WorkerId worker : kept.ended) Put(kept.order, worker, of(worker));
  }
  kept.usable_seen = usable_.changes().count();
  kept.placed_seen = state_.placed.changes().count();
  kept.ended.clear();
  kept.is_made = true;
  if (checks_kept()) PENSTOCK_INVARIANT(kept.order == Computed(of));
}

WorkerOrder WorkerOrders::Computed(PartitionsOf of) const {
  WorkerOrder order;
  for (const UsableWorker& worker : usable_.all()) Put(order, worker.id, of(worker.id));
  return order;
}

void WorkerOrders::NoteEnded(IterationId iteration, WorkerId worker) {
  const auto kept = kept_.find(iteration);
  if (kept != kept_.end()) kept->second.ended.insert(worker);
}

void WorkerOrders::Put(WorkerOrder& order, WorkerId worker, int64_t partitions) const {
  if (const UsableWorker* usable = usable_.Find(worker); usable != nullptr) {
    order.Put(worker, {partitions, state_.PartitionsOn(worker), usable->permits});
  } else {
    order.Remove(worker);
  }
}

}  // namespace penstock::control
