// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/messages/peer_messages.h"

#include <algorithm>
#include <set>
#include <utility>

namespace penstock::control {

PlacedPartition PlacedBy(const State& state, IterationId iteration, PartitionId partition,
                         Placement placement) {
  return {iteration, partition, placement, state.lives.back().life.journal};
}

Welcome WelcomeOf(const State& state, const IterationState& iteration,
                  const protocol::Welcome& welcome) {
  const JobRecord& job = state.jobs.at(iteration.job);
  Welcome to{.iteration = iteration.id,
             .life = state.lives.back().life,
             .seed = job.seed,
             .terms = job.terms};
  const protocol::Positions positions = protocol::PositionsOf(iteration.record);
  const auto reader = iteration.record.FindReader(welcome.client);
  const int64_t consumer = iteration.record.has_order_consumers() && reader
                               ? iteration.record.readers[*reader].consumer
                               : 0;
  if (job.terms.deterministic) to.first = positions.first;
  for (const protocol::Placed& placed : welcome.placements) {
    to.placements.push_back({placed.partition, placed.placement});
    if (!job.terms.deterministic) continue;
    to.passed.push_back(
        positions.RowsIn(protocol::CommittedIndices(iteration.record, placed.partition),
                         placed.partition, consumer));
  }
  return to;
}

Assign AssignOf(const State& state, const IterationState& iteration,
                const protocol::Assign& assign) {
  const JobRecord& job = state.jobs.at(iteration.job);
  Assign to{.of = PlacedBy(state, iteration.id, assign.partition, assign.placement),
            .job = job.id,
            .dataset_id = job.dataset->id,
            .dataset_edition = job.dataset->edition,
            .terms = job.terms,
            .shard = iteration.ShardOfPartition(assign.partition),
            .repetition = iteration.repetition,
            .seed = job.seed,
            .skip = assign.skip,
            .rows = assign.rows,
            .remainder = assign.remainder,
            .lead = iteration.LeadOf(assign.partition),
            .positions = assign.positions,
            .copied = assign.copied};
  if (assign.bookmark.has_value()) {
    to.bookmark_index = assign.bookmark->index;
    to.bookmark = assign.bookmark->bytes;
  }
  for (const auto& [key, run] : iteration.splits[assign.partition.value() - 1].given) {
    to.splits.push_back(run);
  }
  to.readers.assign(assign.readers.begin(), assign.readers.end());
  return to;
}

Membership MembershipOf(const State& state, const IterationState& iteration,
                        const protocol::IterationContext* context, uint64_t version) {
  const auto& readers = iteration.record.readers;
  const int64_t reading =
      std::count_if(readers.begin(), readers.end(), [](const auto& its) { return its.reads(); });
  const int64_t quota = state.jobs.at(iteration.job).terms.quota.max_bytes_in_flight;
  const int64_t share =
      quota == 0 ? 0 : std::max<int64_t>(1, quota / std::max<int64_t>(1, reading));
  Membership membership{
      .version = version, .closed = iteration.record.closed, .max_bytes_in_flight = share};
  const bool ordered = state.jobs.at(iteration.job).terms.deterministic;
  std::set<WorkerId> workers;
  for (size_t p = 0; p < iteration.record.partitions.size(); ++p) {
    const protocol::PartitionRecord& partition = iteration.record.partitions[p];
    membership.partitions.push_back({PartitionId(p + 1), partition.placement, partition.worker});
    if (ordered) {
      membership.partitions.back().end =
          iteration.record.closed ? partition.end : context->partitions[p].ended;
    }
    if (partition.worker) workers.insert(partition.worker);
  }
  for (WorkerId id : workers) {
    if (const WorkerRecord* worker = state.FindWorker(id)) {
      membership.workers.push_back(
          {id, worker->address, worker->offers, worker->tags, worker->process});
    }
  }
  return membership;
}

}  // namespace penstock::control
