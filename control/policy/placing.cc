// SPDX-License-Identifier: Apache-2.0
#include "control/policy/placing.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace penstock::control {
namespace {

using Counts = std::unordered_map<uint64_t, int32_t>;

// Counts each worker's partitions that have not ended.
Counts CountAtWork(const IterationState& iteration, const protocol::IterationContext& context) {
  Counts counts;
  for (size_t p = 0; p < iteration.record.partitions.size(); ++p) {
    const WorkerId worker = iteration.record.partitions[p].worker;
    if (worker && !context.partitions[p].ended) ++counts[worker.value()];
  }
  return counts;
}

int64_t CountOf(const Counts& counts, WorkerId worker) {
  const auto found = counts.find(worker.value());
  return found == counts.end() ? 0 : found->second;
}

int64_t Permits(const State& state, WorkerId worker) {
  const WorkerRecord* record = state.FindWorker(worker);
  return record == nullptr ? 0 : std::max<int64_t>(record->permits, 1);
}

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
WorkerId HomeOf(const State& state, const IterationState& iteration, PartitionId partition,
                absl::Span<const WorkerId> workers) {
  const ShardOf shard = iteration.ShardOfPartition(partition);
  if (shard.count == 0) return WorkerId();
  for (WorkerId worker : workers) {
    const WorkerRecord* record = state.FindWorker(worker);
    if (record != nullptr && record->place == shard.index) return worker;
  }
  return WorkerId();
}

// Returns the first worker of `workers` at each place in the dispatcher's list of workers. Empty if
// the iteration's partitions are not shards, because then no partition has a home.
std::unordered_map<int64_t, WorkerId> WorkersByPlace(const State& state,
                                                     const IterationState& iteration,
                                                     absl::Span<const WorkerId> workers) {
  std::unordered_map<int64_t, WorkerId> by_place;
  if (iteration.division.count == 0) return by_place;
  for (WorkerId worker : workers)
    if (const WorkerRecord* record = state.FindWorker(worker); record != nullptr)
      by_place.try_emplace(record->place, worker);
  return by_place;
}

// Returns the partitions that are not on the workers of their places; nullopt if no partition has
// such a worker.
std::optional<std::vector<PartitionId>> AwayFromHome(const State& state,
                                                     const IterationState& iteration,
                                                     const protocol::IterationContext& context,
                                                     absl::Span<const WorkerId> usable) {
  const std::unordered_map<int64_t, WorkerId> by_place = WorkersByPlace(state, iteration, usable);
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

// The number of a worker's partitions of one iteration, and the worker's permits.
struct Load {
  WorkerId worker;
  int64_t partitions;
  int64_t permits;
  double PerPermit() const {
    return static_cast<double>(partitions) / static_cast<double>(permits);
  }
  double WithOneMore() const { return Load{worker, partitions + 1, permits}.PerPermit(); }
};

}  // namespace

int64_t PartitionsToOpen(const State& state, const IterationState& iteration,
                         absl::Span<const WorkerId> usable) {
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
    return std::max(at_least, within(static_cast<int64_t>(usable.size())) - there);
  }
  if (job->terms.deterministic) return job->terms.partitions - there;
  int64_t permits = 0;
  for (WorkerId worker : usable) permits += Permits(state, worker);
  return std::max(at_least, std::min(within(permits) - there, SplitsLeft(*job, iteration)));
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

static bool HasRoom(const State& state, const PartitionCounts& counts, WorkerId worker) {
  return counts.OfIteration(worker) < kMostPerPermit * Permits(state, worker);
}

bool SomebodyHasRoom(const State& state, const IterationState& iteration,
                     const PartitionCounts& counts, absl::Span<const WorkerId> usable) {
  return !MayWaitForOthers(state, iteration) ||
         std::any_of(usable.begin(), usable.end(),
                     [&](WorkerId worker) { return HasRoom(state, counts, worker); });
}

WorkerId ChooseWorker(const State& state, const IterationState& iteration,
                      const PartitionCounts& counts, PartitionId partition,
                      absl::Span<const WorkerId> usable, absl::Span<const WorkerId> avoid) {
  const WorkerId home = HomeOf(state, iteration, partition, usable);
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
  for (WorkerId worker : usable) {
    if (asks_for_room && !HasRoom(state, counts, worker)) continue;
    const Load load{worker, counts.OfIteration(worker), Permits(state, worker)};
    const Load of_all{worker, counts.OfAll(worker), load.permits};
    const Cost cost{std::find(avoid.begin(), avoid.end(), worker) != avoid.end(),
                    load.WithOneMore(), of_all.PerPermit()};
    if (!chosen || cost < least) {
      least = cost;
      chosen = worker;
    }
  }
  return chosen;
}

bool MayRelieve(const State& state, const IterationState& iteration, int64_t least_permits) {
  const auto partitions = static_cast<int64_t>(iteration.record.partitions.size());
  if (state.placed.CountOf(iteration.id) < partitions) return false;
  return iteration.division.count > 0 || state.placed.MostOn(iteration.id) > least_permits;
}

std::vector<PartitionId> PartitionsToRelieve(const State& state, const IterationState& iteration,
                                             const protocol::IterationContext& context,
                                             absl::Span<const WorkerId> usable) {
  const auto& partitions = iteration.record.partitions;
  if (std::any_of(partitions.begin(), partitions.end(),
                  [](const auto& partition) { return partition.collecting(); })) {
    return {};
  }
  if (SomeReaderIsAway(iteration, context)) return {};
  if (auto away = AwayFromHome(state, iteration, context, usable)) return *std::move(away);
  const Counts at_work = CountAtWork(iteration, context);
  std::vector<Load> loads;
  std::unordered_map<uint64_t, size_t> places;  // the key: the worker; the value: its place in
                                                // `loads`
  for (WorkerId worker : usable) {
    places[worker.value()] = loads.size();
    loads.push_back({worker, CountOf(at_work, worker), Permits(state, worker)});
  }
  std::vector<PartitionId> relieved;
  auto to = loads.end();  // the best worker to move a partition to; end(): to be found
  for (size_t p = 0; p < partitions.size(); ++p) {
    if (context.partitions[p].ended) continue;
    const auto place = places.find(partitions[p].worker.value());
    if (place == places.end()) continue;
    Load* from = &loads[place->second];
    if (from->partitions <= from->permits) continue;
    if (to == loads.end()) {
      to = std::min_element(loads.begin(), loads.end(), [](const Load& a, const Load& b) {
        return a.WithOneMore() < b.WithOneMore();
      });
    }
    if (to->WithOneMore() >= from->PerPermit()) continue;
    --from->partitions;
    ++to->partitions;
    to = loads.end();
    relieved.push_back(PartitionId(p + 1));
  }
  return relieved;
}

}  // namespace penstock::control
