// SPDX-License-Identifier: Apache-2.0
#include "control/policy/placing.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "control/protocol/shard.h"

namespace penstock::control {
namespace {

// Returns the number of splits of the newest repetition that have not been given out, for the
// provider that has the most such splits. If a provider has not begun, all its splits count.
int64_t SplitsLeft(const JobRecord& job, const IterationState& iteration) {
  int64_t most = 0;
  for (size_t p = 0; p < job.dataset->summary.plan.size(); ++p) {
    const int64_t count = job.dataset->summary.plan[p].count;
    const auto provider = static_cast<int32_t>(p);
    auto after = iteration.handed_out.lower_bound({provider + 1, INT64_MIN});
    const bool begun =
        after != iteration.handed_out.begin() && std::prev(after)->first.provider == provider;
    most = std::max(most, begun ? count - std::prev(after)->second : count);
  }
  return most;
}

// Returns the worker among `workers` whose place in the dispatcher's list of workers is the number
// of the partition's shard; none if no worker has that place.
WorkerId HomeOf(const IterationState& iteration, PartitionId partition,
                absl::Span<const UsableWorker> workers) {
  const ShardOf shard = iteration.ShardOfPartition(partition);
  if (shard.count == 0) return WorkerId();
  for (const UsableWorker& worker : workers)
    if (worker.place == shard.index) return worker.id;
  return WorkerId();
}

// Returns the first worker of `workers` at each place in the dispatcher's list of workers. Empty if
// the iteration's partitions are not shards, because then no partition has a home.
std::unordered_map<int64_t, WorkerId> WorkersByPlace(const IterationState& iteration,
                                                     absl::Span<const UsableWorker> workers) {
  std::unordered_map<int64_t, WorkerId> by_place;
  if (iteration.division.count == 0) return by_place;
  for (const UsableWorker& worker : workers) by_place.try_emplace(worker.place, worker.id);
  return by_place;
}

// Returns the partitions that are not on the workers of their places; nullopt if no partition has
// such a worker.
std::optional<std::vector<PartitionId>> AwayFromHome(const IterationState& iteration,
                                                     const protocol::IterationContext& context,
                                                     absl::Span<const UsableWorker> usable) {
  const std::unordered_map<int64_t, WorkerId> by_place = WorkersByPlace(iteration, usable);
  if (by_place.empty()) return std::nullopt;
  std::vector<PartitionId> away;
  bool placed_by_list = false;
  for (size_t p = 0; p < iteration.record.partitions.size(); ++p) {
    const PartitionId partition(p + 1);
    const auto home = by_place.find(iteration.ShardOfPartition(partition).index);
    if (home == by_place.end()) continue;
    placed_by_list = true;
    const bool is_home = iteration.record.partitions[p].worker == home->second;
    if (!is_home && !context.partitions[p].ended) away.push_back(partition);
  }
  return placed_by_list ? std::optional(std::move(away)) : std::nullopt;
}

// Finds out which moves of single partitions lower the load of the most loaded workers.
class Moves {
 public:
  explicit Moves(const WorkerOrder& order) : order_(order) {}

  // Notes the move of a partition of the worker if there is a worker that has fewer per permit even
  // with this partition. Returns whether there is.
  bool Move(WorkerId from) {
    WorkerLoad its = LoadOf(from);
    if (its.partitions <= its.permits) return false;
    if (!to_) to_ = Best();
    WorkerLoad taker = LoadOf(to_);
    if (taker.WithOneMore() >= its.PerPermit()) return false;
    --its.partitions;
    ++taker.partitions;
    moved_[from] = its;
    moved_[std::exchange(to_, WorkerId())] = taker;
    return true;
  }

 private:
  const WorkerLoad& LoadOf(WorkerId worker) const {
    const auto moved = moved_.find(worker);
    return moved == moved_.end() ? order_.LoadOf(worker) : moved->second;
  }
  // Returns the first worker, by id, of those with the lowest load with one more partition.
  WorkerId Best() const {
    std::pair<double, WorkerId> best{std::numeric_limits<double>::infinity(), WorkerId()};
    for (const auto& [worker, load] : moved_) best = std::min(best, {load.WithOneMore(), worker});
    for (const auto& [with_one_more, of_all, worker] : order_.places()) {
      if (with_one_more > best.first) break;
      if (!moved_.contains(worker)) best = std::min(best, {with_one_more, worker});
    }
    return best.second;
  }

  const WorkerOrder& order_;
  absl::flat_hash_map<WorkerId, WorkerLoad> moved_;  // the workers whose loads have changed
  WorkerId to_;                                      // none: to be found
};

}  // namespace

UsableWorker UsableOf(const WorkerRecord& worker) {
  return {worker.id, std::max(worker.permits, 1), worker.place,
          !Reads(TargetWorkers::kAuto, /*local=*/false, worker.tags)};
}

Capacity CapacityOf(absl::Span<const UsableWorker> workers) {
  Capacity sum;
  for (const UsableWorker& worker : workers) {
    ++sum.workers;
    sum.permits += worker.permits;
  }
  return sum;
}

int64_t PartitionsToOpen(const State& state, const IterationState& iteration,
                         const Capacity& usable) {
  const auto there = static_cast<int64_t>(iteration.record.partitions.size());
  const int64_t at_least = there == 0 ? 1 : 0;
  if (iteration.division.count > 0) {
    return static_cast<int64_t>(iteration.division.shards.size()) - there;
  }
  const JobRecord* job = state.FindJob(iteration.job);
  const int64_t quota = job->terms.quota.max_permits;
  const auto within = [&](int64_t partitions) {
    return quota > 0 ? std::min(partitions, quota) : partitions;
  };
  if (job->terms.mode != ShardingPolicy::kDynamic) {
    return std::max(at_least, within(usable.workers) - there);
  }
  if (job->terms.deterministic) return job->terms.partitions - there;
  return std::max(at_least, std::min(within(usable.permits) - there, SplitsLeft(*job, iteration)));
}

bool SomeReaderIsAway(const IterationState& iteration, const protocol::IterationContext& context) {
  for (size_t r = 0; r < iteration.record.readers.size(); ++r) {
    if (iteration.record.readers[r].reads() && !context.present[r]) return true;
  }
  return false;
}

int64_t PartitionCounts::OfIteration(WorkerId worker) const {
  const auto [count, is_new] = of_iteration_.try_emplace(worker, 0);
  if (is_new) {
    for (const PartitionId partition : state_.placed.On(worker, iteration_.id))
      count->second += context_.partitions[partition.value() - 1].ended ? 0 : 1;
  }
  return count->second;
}

bool MayWaitForOthers(const State& state, const IterationState& iteration) {
  const JobRecord* job = state.FindJob(iteration.job);
  return !iteration.record.coordinated() && !job->terms.deterministic && job->dataset->summary.ends;
}

static bool HasRoom(const WorkerLoad& load) {
  return load.partitions < kMostPerPermit * load.permits;
}

WorkerLoad LoadOf(const PartitionCounts& counts, const UsableWorker& worker) {
  return {counts.OfIteration(worker.id), counts.OfAll(worker.id), worker.permits};
}

bool SomebodyHasRoom(const State& state, const IterationState& iteration,
                     const PartitionCounts& counts, absl::Span<const UsableWorker> usable) {
  return !MayWaitForOthers(state, iteration) ||
         std::any_of(usable.begin(), usable.end(),
                     [&](const UsableWorker& worker) { return HasRoom(LoadOf(counts, worker)); });
}

// A worker has room if the load with one more partition is at most kMostPerPermit. So if any worker
// has room, the first has.
bool SomebodyHasRoom(const State& state, const IterationState& iteration,
                     const WorkerOrder& order) {
  return !MayWaitForOthers(state, iteration) ||
         (!order.empty() && HasRoom(order.LoadOf(std::get<WorkerId>(*order.places().begin()))));
}

WorkerId ChooseWorker(const State& state, const IterationState& iteration,
                      const PartitionCounts& counts, PartitionId partition,
                      absl::Span<const UsableWorker> usable, absl::Span<const WorkerId> avoid) {
  const WorkerId home = HomeOf(iteration, partition, usable);
  const bool at_home_only =
      iteration.division.count > 0 &&
      state.FindJob(iteration.job)->terms.target_workers == TargetWorkers::kLocal;
  if (at_home_only || (home && std::find(avoid.begin(), avoid.end(), home) == avoid.end())) {
    return home;
  }
  // (whether the worker is in `avoid`, this iteration's partitions per permit, all partitions per
  // permit)
  using Cost = std::tuple<bool, double, double>;
  const bool asks_for_room = avoid.empty() && MayWaitForOthers(state, iteration);
  Cost least{true, std::numeric_limits<double>::infinity(), 0};
  WorkerId chosen;
  for (const UsableWorker& worker : usable) {
    const WorkerLoad load = LoadOf(counts, worker);
    if (asks_for_room && !HasRoom(load)) continue;
    const Cost cost{std::find(avoid.begin(), avoid.end(), worker.id) != avoid.end(),
                    load.WithOneMore(), load.OfAllPerPermit()};
    if (!chosen || cost < least) {
      least = cost;
      chosen = worker.id;
    }
  }
  return chosen;
}

WorkerId ChooseWorker(const State& state, const IterationState& iteration, const WorkerOrder& order,
                      absl::Span<const WorkerId> avoid) {
  if (order.empty()) return WorkerId();
  if (avoid.empty() && !SomebodyHasRoom(state, iteration, order)) return WorkerId();
  for (const auto& [with_one_more, of_all, worker] : order.places())
    if (std::ranges::find(avoid, worker) == avoid.end()) return worker;
  return std::get<WorkerId>(*order.places().begin());
}

bool SomePartitionWaits(const State& state, const IterationState& iteration) {
  const auto partitions = static_cast<int64_t>(iteration.record.partitions.size());
  return state.placed.CountOf(iteration.id) < partitions;
}

bool MayRelieve(const State& state, const IterationState& iteration, int64_t least_permits) {
  if (SomePartitionWaits(state, iteration)) return false;
  return iteration.division.count > 0 || state.placed.MostOn(iteration.id) > least_permits;
}

std::vector<PartitionId> PartitionsToRelieve(const State& state, const IterationState& iteration,
                                             const protocol::IterationContext& context,
                                             absl::Span<const UsableWorker> usable) {
  if (iteration.division.count > 0 && !SomePartitionWaits(state, iteration) &&
      !SomeReaderIsAway(iteration, context)) {
    if (auto away = AwayFromHome(iteration, context, usable)) return *std::move(away);
  }
  const PartitionCounts counts(state, iteration, context);
  WorkerOrder order;
  for (const UsableWorker& worker : usable) order.Put(worker.id, LoadOf(counts, worker));
  return PartitionsToRelieve(state, iteration, context, order);
}

std::vector<PartitionId> PartitionsToRelieve(const State& state, const IterationState& iteration,
                                             const protocol::IterationContext& context,
                                             const WorkerOrder& order) {
  if (SomePartitionWaits(state, iteration) || order.empty()) return {};
  const double least = std::get<0>(*order.places().begin());  // with one more
  std::vector<PartitionId> movable;
  for (const auto& [negated, worker] : order.overloaded()) {
    if (least >= -negated) break;
    for (const PartitionId partition : state.placed.On(worker, iteration.id))
      if (!context.partitions[partition.value() - 1].ended) movable.push_back(partition);
  }
  if (movable.empty() || SomeReaderIsAway(iteration, context)) return {};
  std::ranges::sort(movable);
  Moves moves(order);
  std::erase_if(movable, [&](PartitionId partition) {
    return !moves.Move(iteration.record.partition(partition).worker);
  });
  return movable;
}

}  // namespace penstock::control
