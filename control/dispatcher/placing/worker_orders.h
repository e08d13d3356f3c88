// SPDX-License-Identifier: Apache-2.0
// Keeps, for each iteration, the usable workers in order of their load. Asking for an order costs
// what has changed since it was last asked for; if the iteration has few partitions, it costs
// these. The core's lock guards it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
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

  // Returns the order of the usable workers for the iteration. If the iteration has few partitions,
  // the order has only the workers with partitions of the iteration, and the first `avoided` + 1 of
  // the others: so the worker to choose is in it if `avoided` workers are not to be chosen. The
  // order is valid until the next call. REQUIRES: `usable` is up to date, and the iteration is
  // neither failed nor cancelled.
  const WorkerOrder& Of(const IterationState& iteration, const protocol::IterationContext& context,
                        size_t avoided = 0);
  // Notes that a partition of the iteration on this worker has ended.
  void NoteEnded(IterationId iteration, WorkerId worker);
  void Forget(IterationId iteration) { kept_.erase(iteration); }
  bool checks_kept() const { return check_kept_ != nullptr && check_kept_(); }

 private:
  // An order costs memory for each worker. An iteration whose order is kept has at least a
  // partition for this many workers, so that all orders together cost no more than the partitions.
  static constexpr size_t kWorkersPerPartition = 8;

  struct Kept {
    WorkerOrder order;
    uint64_t usable_seen = 0;             // changes of the usable workers
    uint64_t placed_seen = 0;             // changes of State::placed
    absl::flat_hash_set<WorkerId> ended;  // workers with partitions that have ended since
    bool is_made = false;
  };
  // Puts the worker at its place in the order, or removes it if it is not usable. `partitions`: its
  // number of partitions of the iteration.
  void Put(WorkerOrder& order, WorkerId worker, int64_t partitions) const;
  // `of`: returns a worker's number of partitions of the iteration.
  using PartitionsOf = absl::FunctionRef<int64_t(WorkerId)>;
  void Update(Kept& kept, PartitionsOf of) const;
  WorkerOrder Computed(PartitionsOf of) const;  // of all usable workers

  const State& state_;
  const UsableWorkers& usable_;
  const std::function<bool()> check_kept_;
  std::map<IterationId, Kept> kept_;
  Kept idle_;        // as for an iteration without partitions
  WorkerOrder few_;  // of the iteration with few partitions that was last asked for
};

}  // namespace penstock::control
