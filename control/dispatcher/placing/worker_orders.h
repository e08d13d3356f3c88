// SPDX-License-Identifier: Apache-2.0
// Keeps, for each iteration, the usable workers in order of their load. Asking for an order costs
// what has changed since it was last asked for. The core's lock guards it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "control/dispatcher/placing/usable_workers.h"
#include "control/policy/worker_order.h"
#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/state/state.h"

namespace penstock::control {

class WorkerOrders {
 public:
  // The references must outlive this object. `check_kept`: as in CoreOptions.
  WorkerOrders(const State& state, const UsableWorkers& usable, std::function<bool()> check_kept)
      : state_(state), usable_(usable), check_kept_(std::move(check_kept)) {}

  // Returns the order of all usable workers for the iteration; null if it has too few partitions
  // for an order. The workers are then counted at each placing. The order is valid until the next
  // call. REQUIRES: `usable` is up to date, and the iteration is neither failed nor cancelled.
  const WorkerOrder* Of(const IterationState& iteration, const protocol::IterationContext& context);
  // Notes that a partition of the iteration on this worker has ended.
  void NoteEnded(IterationId iteration, WorkerId worker);
  void Forget(IterationId iteration) { kept_.erase(iteration); }
  bool checks_kept() const { return check_kept_ != nullptr && check_kept_(); }

 private:
  // An order costs memory for each worker. An iteration that has one has at least a partition for
  // this many workers, so that all orders together cost no more than the partitions.
  static constexpr size_t kWorkersPerPartition = 8;

  struct Kept {
    WorkerOrder order;
    uint64_t usable_seen = 0;             // changes of the usable workers
    uint64_t placed_seen = 0;             // changes of State::placed
    absl::flat_hash_set<WorkerId> ended;  // workers with partitions that have ended since
    bool is_made = false;
  };
  // Puts the worker at its place in the order, or removes it if it is not usable.
  void Put(WorkerOrder& order, const PartitionCounts& counts, WorkerId worker) const;

  const State& state_;
  const UsableWorkers& usable_;
  const std::function<bool()> check_kept_;
  std::map<IterationId, Kept> kept_;
};

}  // namespace penstock::control
