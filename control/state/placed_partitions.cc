// SPDX-License-Identifier: Apache-2.0
#include "control/state/placed_partitions.h"

#include <algorithm>
#include <numeric>

#include "control/protocol/invariant.h"

namespace penstock::control {

void PlacedPartitions::Add(WorkerId worker, const PartitionKey& partition) {
  OfWorker& of_worker = workers_[worker];
  auto& partitions = of_worker.partitions[partition.iteration];
  const auto at = std::ranges::lower_bound(partitions, partition.partition);
  PENSTOCK_INVARIANT(at == partitions.end() || *at != partition.partition);
  partitions.insert(at, partition.partition);
  ++of_worker.count;
  ++count_;
  changes_.Add(worker);
  Recount(partition.iteration, partitions.size() - 1, partitions.size());
}

void PlacedPartitions::Remove(WorkerId worker, const PartitionKey& partition) {
  const auto of_worker = workers_.find(worker);
  PENSTOCK_INVARIANT(of_worker != workers_.end());
  const auto of_iteration = of_worker->second.partitions.find(partition.iteration);
  PENSTOCK_INVARIANT(of_iteration != of_worker->second.partitions.end());
  auto& partitions = of_iteration->second;
  const auto at = std::ranges::lower_bound(partitions, partition.partition);
  PENSTOCK_INVARIANT(at != partitions.end() && *at == partition.partition);
  partitions.erase(at);
  changes_.Add(worker);
  Recount(partition.iteration, partitions.size() + 1, partitions.size());
  if (partitions.empty()) of_worker->second.partitions.erase(of_iteration);
  --count_;
  if (--of_worker->second.count == 0) workers_.erase(of_worker);
}

void PlacedPartitions::Recount(IterationId iteration, size_t before, size_t now) {
  OfIteration& of_iteration = iterations_[iteration];
  std::vector<int32_t>& workers = of_iteration.workers;
  of_iteration.count += now > before ? 1 : -1;
  if (now > workers.size()) workers.resize(now);
  if (now > 0) ++workers[now - 1];
  if (before > 0) --workers[before - 1];
  while (!workers.empty() && workers.back() == 0) workers.pop_back();
  if (of_iteration.count == 0) iterations_.erase(iteration);
}

int64_t PlacedPartitions::CountOf(IterationId iteration) const {
  const auto found = iterations_.find(iteration);
  return found == iterations_.end() ? 0 : found->second.count;
}

int64_t PlacedPartitions::WorkersOf(IterationId iteration) const {
  const auto found = iterations_.find(iteration);
  if (found == iterations_.end()) return 0;
  const std::vector<int32_t>& workers = found->second.workers;
  return std::accumulate(workers.begin(), workers.end(), int64_t{0});
}

int64_t PlacedPartitions::MostOn(IterationId iteration) const {
  const auto found = iterations_.find(iteration);
  return found == iterations_.end() ? 0 : static_cast<int64_t>(found->second.workers.size());
}

int32_t PlacedPartitions::CountOn(WorkerId worker) const {
  const auto found = workers_.find(worker);
  return found == workers_.end() ? 0 : found->second.count;
}

std::vector<IterationId> PlacedPartitions::IterationsOn(WorkerId worker) const {
  std::vector<IterationId> iterations;
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return iterations;
  for (const auto& [iteration, partitions] : found->second.partitions)
    iterations.push_back(iteration);
  return iterations;
}

absl::Span<const PartitionId> PlacedPartitions::On(WorkerId worker, IterationId iteration) const {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return {};
  const auto of_iteration = found->second.partitions.find(iteration);
  if (of_iteration == found->second.partitions.end()) return {};
  return of_iteration->second;
}

}  // namespace penstock::control
