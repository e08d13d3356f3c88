// SPDX-License-Identifier: Apache-2.0
// How many partitions an iteration has and which worker gets one. Pure.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"
#include "control/protocol/iteration_coordinator.h"
#include "control/state/state.h"

namespace penstock::control {

// `usable` below: the workers that are connected and do not drain.

// How many partitions are to be opened now.
// DYNAMIC: one per permit, while splits are left to give; OFF: one per worker;
// where partitions are shards, or merged in a fixed order: all of them at once.
// Never fewer than one in all, so that a reader waits for a worker and not for
// nothing.
int64_t PartitionsToOpen(const State& state, const IterationState& iteration,
                         absl::Span<const WorkerId> usable);

// How many partitions each worker has: counted once, and kept in step by who places several, since
// there may be as many as there are cores in a cluster.
class PartitionCounts {
 public:
  PartitionCounts(const State& state, const IterationState& iteration,
                  const protocol::IterationContext& context);
  int64_t OfIteration(WorkerId worker) const;  // those that have not ended
  int64_t OfAll(WorkerId worker) const;
  void Add(WorkerId worker);  // it has one more of the iteration

 private:
  std::unordered_map<uint64_t, int32_t> of_iteration_;  // by worker
  std::unordered_map<uint64_t, int32_t> of_all_;
};

// A worker gets at most this many partitions of an iteration for each of its permits, where
// partitions may wait for others to end. All that it has are open at once, so few workers that are
// left of many would otherwise hold the pipelines of all.
inline constexpr int64_t kMostPerPermit = 2;
// Whether partitions of `iteration` may wait for others to end: each is sure to, and no order among
// them is promised.
bool MayWaitForOthers(const State& state, const IterationState& iteration);
// Whether a worker of `usable` has room for one more of `iteration`.
bool SomebodyHasRoom(const State& state, const IterationState& iteration,
                     const PartitionCounts& counts, absl::Span<const WorkerId> usable);

// Who gets `partition` of `iteration`: a shard the worker whose place in the list
// it is, and under target LOCAL no other; then the one that has with it the fewest
// of the iteration's partitions per permit, not counting those that have ended; then
// the fewest of all. `avoid` only if there is no other. None if nobody is usable, or nobody has
// room; where some are to be avoided, no room is asked for.
WorkerId ChooseWorker(const State& state, const IterationState& iteration,
                      const PartitionCounts& counts, PartitionId partition,
                      absl::Span<const WorkerId> usable, absl::Span<const WorkerId> avoid = {});

// Partitions to take from workers, since ChooseWorker has a better place for them:
// from one with more of `iteration` than permits, to whom has fewer per permit also
// with one more; where the workers have places in a list, the shards that another
// has in place of theirs. None while one waits for a worker anyway, or while a reader
// is away that would have to answer first. Those that have ended stay where they are.
// Moving these leaves nothing to relieve.
std::vector<PartitionId> PartitionsToRelieve(const State& state, const IterationState& iteration,
                                             const protocol::IterationContext& context,
                                             absl::Span<const WorkerId> usable);

}  // namespace penstock::control
