// SPDX-License-Identifier: Apache-2.0
// Jobs and iterations that nobody reads, and how long they are kept.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/dispatcher/iteration_end.h"
#include "control/dispatcher/job_registry.h"
#include "control/dispatcher/transaction.h"

namespace penstock::control {

// Returns whether a named job that is not over may be forgotten once nobody reads it. False if
// nobody has read the job yet, or if a trainer may come back for its part. A trainer may come back
// under ack_mode = on_commit and, unless gc_dynamic_sharding_jobs is set, in mode DYNAMIC without
// cross_trainer_cache.
bool JobRegistry::Collectable(const JobRecord& job) const {
  const JobTerms& terms = job.terms;
  const bool history = terms.mode == ShardingPolicy::kDynamic && !terms.cross_trainer_cache;
  if (terms.ack_mode == AckMode::kOnCommit || (history && !options_.gc_dynamic_sharding_jobs)) {
    return false;
  }
  const std::vector<IterationId> iterations = state_.IterationsOf(job.id);
  return !state_.PastOf(job.id).empty() ||
         std::any_of(iterations.begin(), iterations.end(), [this](IterationId id) {
           return !state_.iterations.at(id).record.readers.empty();
         });
}

void JobRegistry::RetireIterations(Transaction& txn) {
  std::vector<IterationId> over;
  for (const auto& [id, iteration] : state_.iterations) {
    if (iteration.record.finished && !iteration.failure.has_value() && !shared_.IsConnected(id))
      over.push_back(id);
  }
  for (const IterationId id : over) {
    txn.EndOf(state_.iterations.at(id)).Forget();
    txn.Apply(IterationRetired{id});
  }
}

std::optional<absl::Duration> JobRegistry::UnreadFor(JobId job, absl::Time now) const {
  const auto since = idle_since_.find(job);
  if (since == idle_since_.end()) return std::nullopt;
  return now - since->second;
}

absl::Duration JobRegistry::TimeToLive(const JobRecord& job) const {
  return job.anonymous || state_.IsOver(job) || Collectable(job) ? options_.job_gc_timeout
                                                                 : options_.abandoned_job_ttl;
}

std::string JobRegistry::OwedOf(JobId job) const {
  std::vector<std::string> parts;
  for (const IterationId of : state_.IterationsOf(job)) {
    const IterationState& iteration = state_.iterations.at(of);
    if (!state_.GoesOn(iteration) || iteration.record.finished) continue;
    if (!iteration.record.closed) {
      parts.push_back(
          absl::StrCat("repetition ", iteration.repetition, ", which is not read to its end"));
      continue;
    }
    int64_t owed = 0;
    const protocol::Positions positions = protocol::PositionsOf(iteration.record);
    for (size_t p = 0; p < iteration.record.partitions.size(); ++p)
      owed += protocol::Owed(iteration.record, positions, PartitionId(p + 1)).size();
    parts.push_back(
        absl::StrCat(owed, " elements of repetition ", iteration.repetition, " not committed"));
  }
  return absl::StrJoin(parts, ", ");
}

// Forgets jobs without readers. After job_gc_timeout, elements that closed iterations still owe are
// given up, except with ack_mode = on_commit: then the next reader gets them. Jobs that are over,
// anonymous or Collectable() are forgotten after job_gc_timeout, other jobs after
// abandoned_job_ttl.
void JobRegistry::Collect(Transaction& txn, absl::Time now) {
  std::vector<std::pair<JobId, absl::Duration>> idle;  // with the time since the job was last read
  for (const auto& [id, job] : state_.jobs) {
    bool read = false;
    for (IterationId of : state_.IterationsOf(id)) {
      const IterationState& iteration = state_.iterations.at(of);
      read |= shared_.IsConnected(of);
      if (!state_.GoesOn(iteration) || iteration.record.finished) continue;
      read |= std::any_of(
          iteration.record.readers.begin(), iteration.record.readers.end(),
          [](const auto& reader) { return reader.status == protocol::ReaderStatus::kActive; });
    }
    if (read) {
      idle_since_.erase(id);
    } else {
      idle.push_back({id, now - idle_since_.try_emplace(id, now).first->second});
    }
  }
  for (const auto& [id, unread_for] : idle) {
    if (unread_for < std::min(options_.job_gc_timeout, options_.abandoned_job_ttl)) continue;
    for (IterationId of : state_.IterationsOf(id)) {
      const IterationState& iteration = state_.iterations.at(of);
      if (unread_for >= options_.job_gc_timeout && state_.GoesOn(iteration) &&
          iteration.record.closed && !iteration.record.finished &&
          state_.jobs.at(id).terms.ack_mode != AckMode::kOnCommit) {
        txn.Log("given_up", {{"iteration", absl::StrCat(of.value())},
                             {"job", state_.jobs.at(id).name},
                             {"owed", OwedOf(id)}});
        txn.Settle(of, protocol::GiveUp(iteration.record, txn.GetContext(of)));
      }
    }
    const JobRecord& job = state_.jobs.at(id);
    if (unread_for < TimeToLive(job)) continue;
    txn.Log("job_forgotten", {{"job", absl::StrCat(id.value())},
                              {"name", job.name},
                              {"unread_for", absl::FormatDuration(unread_for)},
                              {"owed", OwedOf(id)}});
    TakeFromWorkers(txn, id);
    Forget(txn, id);
  }
}

}  // namespace penstock::control
