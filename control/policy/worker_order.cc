// SPDX-License-Identifier: Apache-2.0
#include "control/policy/worker_order.h"

namespace penstock::control {

static WorkerOrder::Place PlaceOf(WorkerId worker, const WorkerLoad& load) {
  return {load.WithOneMore(), load.OfAllPerPermit(), worker};
}

void WorkerOrder::Put(WorkerId worker, const WorkerLoad& load) {
  if (const auto before = loads_.find(worker); before != loads_.end()) {
    if (before->second == load) return;
    Remove(worker);
  }
  loads_.emplace(worker, load);
  places_.insert(PlaceOf(worker, load));
  if (load.partitions > load.permits) overloaded_.insert({-load.PerPermit(), worker});
}

void WorkerOrder::Remove(WorkerId worker) {
  const auto found = loads_.find(worker);
  if (found == loads_.end()) return;
  places_.erase(PlaceOf(worker, found->second));
  overloaded_.erase({-found->second.PerPermit(), worker});
  loads_.erase(found);
}

}  // namespace penstock::control
