// SPDX-License-Identifier: Apache-2.0
// The workers that may get partitions of one iteration, while partitions are placed. Finds the
// worker for a partition in the kept order if all usable workers are candidates, and by a look at
// each candidate otherwise.
#pragma once

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "control/dispatcher/placing/usable_workers.h"
#include "control/dispatcher/placing/worker_orders.h"
#include "control/policy/placing.h"

namespace penstock::control {

class Candidates {
 public:
  // `some`: the candidates, ascending by id; none: all usable workers. The references must outlive
  // this object. REQUIRES: `usable` does not change while this object exists.
  Candidates(const State& state, const IterationState& iteration,
             const protocol::IterationContext& context, const UsableWorkers& usable,
             WorkerOrders& orders, std::optional<std::vector<UsableWorker>> some)
      : state_(state),
        iteration_(iteration),
        context_(context),
        usable_(usable),
        orders_(orders),
        some_(std::move(some)),
        counts_(state, iteration, context) {}
  Candidates(const Candidates&) = delete;

  absl::Span<const UsableWorker> list() const { return some_ ? *some_ : usable_.all(); }
  Capacity capacity() const { return some_ ? CapacityOf(*some_) : usable_.capacity(); }
  // These return what the functions of similar names in control/policy/placing.h return.
  bool SomebodyHasRoom() const;
  WorkerId Choose(PartitionId partition, absl::Span<const WorkerId> avoid) const;
  std::vector<PartitionId> ToRelieve() const;
  // Call it after a partition was placed on the worker.
  void CountAgain(WorkerId worker) { counts_.CountAgain(worker); }

  const PartitionCounts& counts() const { return counts_; }

 private:
  // Returns the order of the candidates; null if there is none. `avoided`: as in
  // WorkerOrders::Of().
  const WorkerOrder* Order(size_t avoided = 0) const;

  const State& state_;
  const IterationState& iteration_;
  const protocol::IterationContext& context_;
  const UsableWorkers& usable_;
  WorkerOrders& orders_;
  const std::optional<std::vector<UsableWorker>> some_;
  PartitionCounts counts_;
};

}  // namespace penstock::control
