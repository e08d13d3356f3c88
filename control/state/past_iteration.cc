// SPDX-License-Identifier: Apache-2.0
#include "control/state/past_iteration.h"

#include <algorithm>

#include "control/protocol/invariant.h"
#include "control/state/state.h"

namespace penstock::control {

PastIteration ToPast(const IterationState& iteration) {
  const protocol::IterationRecord& record = iteration.record;
  PENSTOCK_INVARIANT(record.forgotten);
  PastIteration past{.id = iteration.id, .ends = {}, .more = nullptr};
  for (const protocol::PartitionRecord& partition : record.partitions)
    past.ends.push_back(partition.end.value_or(0));
  auto more = std::make_shared<PastIteration::More>();
  more->division = iteration.division;
  if (record.coordinated()) {
    more->rounds = record.rounds;
    if (!record.rounds.ends.empty()) {
      const int64_t whole = protocol::WholeRounds(record.rounds.ends, record.rounds.consumers);
      protocol::Schedule& schedule = more->rounds.schedule;
      // The schedule may already begin later, among the rounds of remainders.
      protocol::ForgetBefore(schedule, std::max(schedule.first, whole));
    }
  }
  for (const protocol::ReaderRecord& reader : record.readers) {
    if (record.commit_policy != protocol::CommitPolicy::kExplicit && reader.consumer < 0 &&
        reader.status != protocol::ReaderStatus::kExpired)
      continue;
    more->readers.push_back({reader.client, reader.incarnation, reader.mark,
                             static_cast<int32_t>(reader.consumer), reader.status});
  }
  more->readers.shrink_to_fit();
  if (more->division.count > 0 || record.coordinated() || !more->readers.empty())
    past.more = std::move(more);
  return past;
}

IterationState FromPast(JobId job, const JobTerms& terms, int64_t repetition,
                        const PastIteration& past) {
  IterationState iteration =
      NewIteration({.iteration = past.id, .job = job, .repetition = repetition}, terms);
  protocol::IterationRecord& record = iteration.record;
  for (const Index end : past.ends) record.partitions.emplace_back().end = end;
  protocol::ComputeKept(record);
  iteration.splits.resize(record.partitions.size());
  record.closed = record.finished = record.forgotten = true;
  if (past.more == nullptr) return iteration;
  iteration.division = past.more->division;
  if (record.coordinated()) record.rounds = past.more->rounds;
  for (const PastIteration::Reader& from : past.more->readers) {
    protocol::ReaderRecord reader;
    reader.client = from.client;
    reader.incarnation = from.incarnation;
    reader.status = from.status;
    reader.end_notified = from.status == protocol::ReaderStatus::kActive;
    reader.consumer = from.consumer;
    reader.mark = from.mark;
    record.readers.Add(std::move(reader));
  }
  return iteration;
}

}  // namespace penstock::control
