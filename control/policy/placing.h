// SPDX-License-Identifier: Apache-2.0
// Decides how many partitions an iteration has and which worker gets each. Pure.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"
#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/state/state.h"

namespace penstock::control {

// In this file `usable` is the list of workers that are connected and not draining.

// Returns how many partitions to open now.
// - DYNAMIC: one per permit, while splits are left to give.
// - OFF: one per worker.
// - Partitions that are shards, or merged in a fixed order: all of them at once.
// The iteration gets at least one partition, so that its readers have a worker to wait for.
int64_t PartitionsToOpen(const State& state, const IterationState& iteration,
                         absl::Span<const WorkerId> usable);

// How many partitions each worker has. Counted once; a caller that places several partitions keeps
// it up to date with Add(), because there may be as many partitions as cores in a cluster.
class PartitionCounts {
 public:
  PartitionCounts(const State& state, const IterationState& iteration,
                  const protocol::IterationContext& context);
  int64_t OfIteration(WorkerId worker) const;  // without those that have ended
  int64_t OfAll(WorkerId worker) const;
  void Add(WorkerId worker);  // one more of the iteration

 private:
  std::unordered_map<uint64_t, int32_t> of_iteration_;  // by worker
  std::unordered_map<uint64_t, int32_t> of_all_;
};

// The maximum number of partitions of an iteration that a worker gets per permit, if partitions may
// wait for others to end. All partitions of a worker are open at once. Without this bound, a few
// surviving workers would hold the pipelines of all that were lost.
inline constexpr int64_t kMostPerPermit = 2;
// Returns whether partitions of `iteration` may wait for others to end: each of them is certain to
// end, and no order among them is promised.
bool MayWaitForOthers(const State& state, const IterationState& iteration);
// Returns whether a worker in `usable` has room for one more partition of `iteration`.
bool SomebodyHasRoom(const State& state, const IterationState& iteration,
                     const PartitionCounts& counts, absl::Span<const WorkerId> usable);

// Returns the worker that gets `partition` of `iteration`. A shard goes to the worker whose place
// in the list is its number; under target LOCAL to no other. Otherwise the partition is placed on
// the worker that then has the fewest of the iteration's partitions per permit, not counting ended
// ones; among equals, on the one with the fewest partitions of all iterations. A worker in `avoid`
// is chosen only if there is no other. Returns none if no worker is usable or none has room; with a
// nonempty `avoid` room is not required.
WorkerId ChooseWorker(const State& state, const IterationState& iteration,
                      const PartitionCounts& counts, PartitionId partition,
                      absl::Span<const WorkerId> usable, absl::Span<const WorkerId> avoid = {});

// Returns the partitions to take from workers because ChooseWorker has a better place for them.
// These are partitions of a worker with more of `iteration` than permits, if another worker would
// have fewer per permit even with one more. If the workers have places in a list, these are the
// shards that are not on the worker of their place. Returns none while a partition waits for a
// worker anyway, or while a reader that would have to answer first is disconnected. Ended
// partitions stay where they are. After these moves, a second call returns none.
std::vector<PartitionId> PartitionsToRelieve(const State& state, const IterationState& iteration,
                                             const protocol::IterationContext& context,
                                             absl::Span<const WorkerId> usable);

}  // namespace penstock::control
