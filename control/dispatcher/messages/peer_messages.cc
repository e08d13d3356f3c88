// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/messages/peer_messages.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "control/protocol/each_position.h"

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
             .terms = job.terms,
             .partial = welcome.partial};
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
        positions.RowsIn(protocol::CommittedIndices(iteration.record, positions, placed.partition),
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

Membership::Worker DescriptionOf(const WorkerRecord& worker) {
  return {worker.id, worker.address, worker.offers, worker.tags, worker.process};
}

namespace {

class MembershipBuilder {
 public:
  MembershipBuilder(const State& state, const IterationState& iteration,
                    const protocol::IterationContext* context, uint64_t version,
                    std::optional<size_t> reader)
      : state_(state),
        record_(iteration.record),
        terms_(state.jobs.at(iteration.job).terms),
        context_(context),
        reader_(reader) {
    message_.version = version;
    message_.num_partitions = record_.partitions.size();
    message_.closed = record_.closed;
    message_.max_bytes_in_flight = ShareOfBytes();
  }

  void Add(PartitionId id) {
    const protocol::PartitionRecord& partition = record_.partition(id);
    const bool serves =
        !partition.audience || (reader_.has_value() && partition.MayServe(*reader_));
    const WorkerId worker = serves ? partition.worker : WorkerId();
    message_.partitions.push_back({id, partition.placement, worker});
    if (terms_.deterministic) {
      message_.partitions.back().end =
          record_.closed ? partition.end : context_->partitions[id.value() - 1].ended;
    }
    if (worker) workers_.insert(worker);
  }
  Membership Build() && {
    for (WorkerId id : workers_) {
      if (const WorkerRecord* worker = state_.FindWorker(id))
        message_.workers.push_back(DescriptionOf(*worker));
    }
    return std::move(message_);
  }

 private:
  int64_t ShareOfBytes() const {
    const int64_t quota = terms_.quota.max_bytes_in_flight;
    if (quota == 0) return 0;
    const int64_t reading = std::count_if(record_.readers.begin(), record_.readers.end(),
                                          [](const auto& its) { return its.reads(); });
    return std::max<int64_t>(1, quota / std::max<int64_t>(1, reading));
  }

  const State& state_;
  const protocol::IterationRecord& record_;
  const JobTerms& terms_;
  const protocol::IterationContext* const context_;
  const std::optional<size_t> reader_;
  Membership message_;
  std::set<WorkerId> workers_;
};

}  // namespace

Membership MembershipOf(const State& state, const IterationState& iteration,
                        const protocol::IterationContext* context, uint64_t version,
                        std::optional<size_t> reader) {
  MembershipBuilder builder(state, iteration, context, version, reader);
  protocol::ForEach(iteration.record.PartitionsFor(reader),
                    [&](size_t p) { builder.Add(PartitionId(p + 1)); });
  return std::move(builder).Build();
}

Membership MembershipChangeOf(const State& state, const IterationState& iteration,
                              const protocol::IterationContext* context, uint64_t version,
                              std::optional<size_t> reader,
                              const std::set<PartitionId>& partitions) {
  MembershipBuilder builder(state, iteration, context, version, reader);
  for (PartitionId partition : partitions) builder.Add(partition);
  return std::move(builder).Build();
}

}  // namespace penstock::control
