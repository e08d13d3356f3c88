// SPDX-License-Identifier: Apache-2.0
#include "control/policy/fair_shares.h"

#include "control/policy/placing.h"

namespace penstock::control {

bool GoesBefore(const Claim& a, const Claim& b) {
  if (a.share.priority != b.share.priority) return a.share.priority > b.share.priority;
  const int64_t of_a = a.partitions * b.share.weight, of_b = b.partitions * a.share.weight;
  return of_a != of_b ? of_a < of_b : a.iteration < b.iteration;
}

bool GivesUpFor(const Claim& from, const Claim& to) {
  if (from.share.priority != to.share.priority) return from.share.priority < to.share.priority;
  return (to.partitions + 1) * from.share.weight <= (from.partitions - 1) * to.share.weight;
}

std::optional<PartitionId> PartitionToSpare(const State& state, const IterationState& iteration,
                                            const protocol::IterationContext& context) {
  const auto& partitions = iteration.record.partitions;
  if (iteration.record.coordinated() || state.jobs.at(iteration.job).terms.deterministic ||
      SomeReaderIsAway(iteration, context)) {
    return std::nullopt;
  }
  // The last was opened last, so it has the least to replay.
  for (size_t p = partitions.size(); p > 0; --p)
    if (partitions[p - 1].worker && !context.partitions[p - 1].ended) return PartitionId(p);
  return std::nullopt;
}

}  // namespace penstock::control
