// SPDX-License-Identifier: Apache-2.0
// Decides how many partitions an iteration has, and which worker gets each partition. Pure
// functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "control/policy/worker_order.h"
#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/state/state.h"

namespace penstock::control {

// A worker that is connected and not draining, with those of its data on which placing depends.
struct UsableWorker {
  WorkerId id;
  int64_t permits = 1;     // at least 1
  int64_t place = -1;      // as in WorkerRecord
  bool colocated = false;  // under target AUTO, read only by clients in its process
  friend bool operator==(const UsableWorker&, const UsableWorker&) = default;
};
UsableWorker UsableOf(const WorkerRecord& worker);

// The sums over workers.
struct Capacity {
  int64_t workers = 0;
  int64_t permits = 0;
  friend bool operator==(const Capacity&, const Capacity&) = default;
};
Capacity CapacityOf(absl::Span<const UsableWorker> workers);

// In this file `usable` is the list of usable workers, ascending by id, and `order` has the same
// workers with their loads. A function with `order` returns what the function of the same name
// returns with `usable`, without a look at all workers.

// Returns the number of partitions to open now, so that the iteration has:
// - in mode DYNAMIC, one partition per permit, while splits are left to give out;
// - in mode OFF, one partition per worker;
// - if its partitions are shards or are merged in a fixed order, all of them at once.
// The iteration gets at least one partition, so that its readers have a worker to wait for.
int64_t PartitionsToOpen(const State& state, const IterationState& iteration,
                         const Capacity& usable);

// The number of partitions of each worker. Counts the partitions of a worker when it is first asked
// for that worker, and remembers the number, because many partitions may be placed one after
// another. REQUIRES: the iteration is neither failed nor cancelled. The arguments must outlive it.
class PartitionCounts {
 public:
  PartitionCounts(const State& state, const IterationState& iteration,
                  const protocol::IterationContext& context)
      : state_(state), iteration_(iteration), context_(context) {}
  int64_t OfIteration(WorkerId worker) const;  // without ended partitions
  int64_t OfAll(WorkerId worker) const { return state_.PartitionsOn(worker); }
  // Call it after a partition of the iteration was placed on the worker.
  void CountAgain(WorkerId worker) { of_iteration_.erase(worker); }

 private:
  const State& state_;
  const IterationState& iteration_;
  const protocol::IterationContext& context_;
  mutable absl::flat_hash_map<WorkerId, int64_t> of_iteration_;
};

WorkerLoad LoadOf(const PartitionCounts& counts, const UsableWorker& worker);

// The maximum number of an iteration's partitions that a worker gets per permit, if partitions may
// wait until others have ended. The number is limited because all partitions of a worker are open
// at once: without the limit, a few surviving workers would run the pipelines of all lost workers
// at once.
inline constexpr int64_t kMostPerPermit = 2;
// Returns whether a partition of `iteration` may wait for a worker until other partitions have
// ended. This is so if each partition is certain to end, and no order of the partitions is
// promised.
bool MayWaitForOthers(const State& state, const IterationState& iteration);
// Returns whether a worker in `usable` may get one more partition of `iteration`.
bool SomebodyHasRoom(const State& state, const IterationState& iteration,
                     const PartitionCounts& counts, absl::Span<const UsableWorker> usable);
bool SomebodyHasRoom(const State& state, const IterationState& iteration, const WorkerOrder& order);

// Returns the worker that gets `partition` of `iteration`. A shard goes to the worker whose place
// in the list of workers is the shard's number; under target LOCAL it goes to no other worker. Any
// other partition goes to the worker that has the fewest of the iteration's partitions per permit
// after `partition` is added; ended partitions do not count. If there are several such workers, it
// goes to the one with the fewest partitions of all iterations per permit. A worker in `avoid` is
// chosen only if there is no other. Returns none if no worker is usable, or if all usable workers
// have kMostPerPermit partitions per permit and partitions may wait; this limit is ignored if
// `avoid` is not empty.
WorkerId ChooseWorker(const State& state, const IterationState& iteration,
                      const PartitionCounts& counts, PartitionId partition,
                      absl::Span<const UsableWorker> usable, absl::Span<const WorkerId> avoid = {});
// REQUIRES: the iteration's partitions are not shards.
WorkerId ChooseWorker(const State& state, const IterationState& iteration, const WorkerOrder& order,
                      absl::Span<const WorkerId> avoid = {});

// Returns whether a partition has no worker. REQUIRES: the iteration is neither failed nor
// cancelled.
bool SomePartitionWaits(const State& state, const IterationState& iteration);

// Returns whether a reader is disconnected whose answer a move of a partition needs.
bool SomeReaderIsAway(const IterationState& iteration, const protocol::IterationContext& context);

// Returns the partitions to take from workers because ChooseWorker would choose better workers for
// them. If the workers have places in a list, these are the shards that are not on the worker of
// their place. Otherwise, these are partitions of a worker that has more partitions of `iteration`
// than permits, if another worker would have fewer per permit even with one partition more. Returns
// none while a partition waits for a worker anyway, or while a reader that would have to answer
// first is disconnected. Ended partitions stay where they are. After these moves, a second call
// returns none.
//
// MayRelieve() returns false if PartitionsToRelieve() would return none because a partition waits,
// or because no worker has more partitions than permits. Takes constant time. `least_permits`: the
// lowest number of permits of the usable workers.
bool MayRelieve(const State& state, const IterationState& iteration, int64_t least_permits);
std::vector<PartitionId> PartitionsToRelieve(const State& state, const IterationState& iteration,
                                             const protocol::IterationContext& context,
                                             absl::Span<const UsableWorker> usable);
// REQUIRES: the iteration's partitions are not shards.
std::vector<PartitionId> PartitionsToRelieve(const State& state, const IterationState& iteration,
                                             const protocol::IterationContext& context,
                                             const WorkerOrder& order);

}  // namespace penstock::control
