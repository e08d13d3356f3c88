// SPDX-License-Identifier: Apache-2.0
// Reports the status of a dispatcher, for people.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/transaction.h"

namespace penstock::control {
namespace {

// The number of a job's past iterations that are listed one by one. Earlier iterations are summed
// up.
constexpr size_t kPastShown = 100;

PartitionStatus StatusOf(const IterationState& iteration, size_t p,
                         const protocol::IterationContext* context, bool has_workers) {
  const protocol::PartitionRecord& partition = iteration.record.partitions[p];
  PartitionStatus status{.partition = PartitionId(p + 1),
                         .placement = partition.placement,
                         .worker = partition.worker};
  std::optional<Index> end = partition.end;
  if (!end.has_value() && context != nullptr) end = context->partitions[p].ended;
  status.ended = end.has_value();
  status.elements = end.value_or(-1);
  for (const auto& [key, run] : iteration.splits[p].given) {
    status.splits_given += run.first_ordinal + static_cast<int64_t>(run.numbers.size());
  }
  IndexSet received = protocol::CommittedIndices(iteration.record, status.partition);
  status.committed = received.size();
  if (context != nullptr) {
    for (const protocol::AckState& ack : context->partitions[p].readers) received.Add(ack.reported);
  }
  status.received = received.size();
  if (!status.worker && !iteration.record.closed) {
    const bool answered =
        context != nullptr && !protocol::Assignable(iteration.record, *context).empty();
    status.waits_for = !answered     ? "its readers to report their elements"
                       : has_workers ? "room on a worker"
                                     : "a worker";
  }
  return status;
}

// Describes what a coordinated read waits for.
std::string WaitsFor(const ConsumersLost& lost, const protocol::IterationContext* context) {
  std::vector<std::string> parts;
  for (const ConsumersLost::Consumer& consumer : lost.consumers) {
    parts.push_back(absl::StrCat(
        "consumer ", consumer.consumer, consumer.dead ? ", dead, silent for " : ", silent for ",
        absl::FormatDuration(absl::Trunc(consumer.silent, absl::Milliseconds(100))), " (",
        consumer.why, ")"));
  }
  if (parts.empty() && context != nullptr) return context->rounds.waits_for;
  return absl::StrJoin(parts, ", ");
}

// Describes what an iteration of any other job waits for; empty if it does not wait.
std::string WaitsFor(const IterationStatus& status, bool has_workers) {
  if (status.finished) return "";
  if (status.readers.empty()) return "a reader";
  if (status.closed) return "";
  if (status.partitions.empty()) return has_workers ? "" : "a worker";
  std::map<std::string, std::vector<std::string>> partitions;  // the key: the reason for waiting
  for (const PartitionStatus& partition : status.partitions) {
    if (partition.waits_for.empty()) continue;
    partitions[partition.waits_for].push_back(absl::StrCat(partition.partition.value()));
  }
  std::vector<std::string> parts;
  for (const auto& [whom, numbers] : partitions)
    parts.push_back(absl::StrCat(whom, " (partition ", absl::StrJoin(numbers, ", "), ")"));
  return absl::StrJoin(parts, ", ");
}

IterationStatus StatusOf(const IterationState& iteration, const protocol::IterationContext* context,
                         bool has_workers) {
  IterationStatus status{.iteration = iteration.id,
                         .repetition = iteration.repetition,
                         .closed = iteration.record.closed,
                         .finished = iteration.record.finished};
  for (const protocol::ReaderRecord& reader : iteration.record.readers) {
    if (reader.status == protocol::ReaderStatus::kActive) {
      status.readers.push_back({reader.client, reader.incarnation});
    }
  }
  std::vector<std::string> owed;
  for (size_t p = 0; p < iteration.record.partitions.size(); ++p) {
    status.partitions.push_back(StatusOf(iteration, p, context, has_workers));
    if (!iteration.record.closed || iteration.record.finished) continue;
    const IndexSet of = protocol::Owed(iteration.record, PartitionId(p + 1));
    if (!of.empty()) owed.push_back(absl::StrCat("partition ", p + 1, " ", of.ToString()));
  }
  status.owed = absl::StrJoin(owed, ", ");
  return status;
}

}  // namespace

std::string Core::SlowedBy(const JobRecord& job) const {
  const JobQuota& quota = job.terms.quota;
  std::vector<std::string> bounds;
  int64_t permits = 0;
  for (const auto& [id, worker] : shared_.state.workers) permits += std::max(worker.permits, 1);
  if (job.terms.mode == ShardingPolicy::kOff)
    permits = static_cast<int64_t>(shared_.workers.size());
  bool bytes = false, partitions = false;
  for (IterationId of : shared_.state.IterationsOf(job.id)) {
    const IterationState& iteration = shared_.state.iterations.at(of);
    if (!shared_.state.GoesOn(iteration) || iteration.record.closed) continue;
    const auto open = static_cast<int64_t>(iteration.record.partitions.size());
    partitions |= quota.max_permits > 0 && open >= quota.max_permits && permits > open;
    for (auto session = shared_.sessions.lower_bound({of, ClientId()});
         session != shared_.sessions.end() && session->first.first == of; ++session) {
      bytes |= quota.max_bytes_in_flight > 0 && session->second->at_quota;
    }
  }
  if (bytes) bounds.push_back(absl::StrCat("max_bytes_in_flight ", quota.max_bytes_in_flight));
  if (partitions) bounds.push_back(absl::StrCat("max_permits ", quota.max_permits));
  return absl::StrJoin(bounds, ", ");
}

void Core::GetStatus(Done<DispatcherStatus> done) {
  Transaction txn(*this);
  const absl::Time now = options_.now();
  DispatcherStatus status{.term = shared_.state.term(),
                          .release = PENSTOCK_VERSION,
                          .journal = journal_->name(),
                          .journal_sequence = shared_.sequence,
                          .wanted_workers = scaling_.latest().workers};
  std::map<const DatasetRecord*, int64_t> jobs_of;
  for (const auto& [id, job] : shared_.state.jobs) ++jobs_of[job.dataset.get()];
  for (const auto& [id, dataset] : shared_.state.datasets) {
    DatasetStatus& to = status.datasets.emplace_back(DatasetStatus{
        id, dataset->summary.fingerprint, dataset->summary.spec_text, dataset->summary.cardinality,
        static_cast<int64_t>(dataset->definition.size()), jobs_of[dataset.get()]});
    to.goes_in = datasets_.GoesIn(id, now);
  }
  for (const auto& [id, job] : shared_.state.jobs) {
    JobStatus& to = status.jobs.emplace_back();
    to = {.job = id,
          .name = job.name,
          .run_id = job.run_id,
          .dataset_id = job.dataset->id,
          .terms = job.terms,
          .seed = job.seed,
          .phase = job.cancelled               ? JobPhase::kCancelled
                   : shared_.state.IsOver(job) ? JobPhase::kFinished
                                               : JobPhase::kActive,
          .slowed_by = SlowedBy(job)};
    if (const auto unread_for = jobs_.UnreadFor(id, now)) {
      to.unread_for = *unread_for;
      to.goes_in = jobs_.TimeToLive(job) - to.unread_for;
    }
    const auto& feeds = scaling_.latest().jobs;
    if (const auto feed = feeds.find(id); feed != feeds.end()) to.feed = feed->second;
    const std::vector<int64_t> past = shared_.state.PastOf(id);
    to.earlier_iterations = static_cast<int64_t>(past.size() - std::min(past.size(), kPastShown));
    for (size_t i = 0; i < past.size(); ++i) {
      if (static_cast<int64_t>(i) < to.earlier_iterations) {
        const auto& ends = shared_.state.past.at({id, past[i]}).ends;
        to.earlier_elements += std::accumulate(ends.begin(), ends.end(), Index{0});
      } else {
        to.iterations.push_back(StatusOf(*shared_.state.FindPast(id, past[i]), nullptr, false));
      }
    }
    for (IterationId of : shared_.state.IterationsOf(id)) {
      auto context = shared_.contexts.find(of);
      const protocol::IterationContext* known =
          context == shared_.contexts.end() ? nullptr : &context->second;
      to.iterations.push_back(
          StatusOf(shared_.state.iterations.at(of), known, !shared_.workers.empty()));
      IterationStatus& its = to.iterations.back();
      if (!its.closed) its.waits_for = WaitsFor(consumers_.Lost(of, now), known);
      if (its.waits_for.empty() && shared_.state.GoesOn(shared_.state.iterations.at(of)))
        its.waits_for = WaitsFor(its, !shared_.workers.empty());
    }
  }
  const std::unordered_map<uint64_t, int32_t> on = shared_.state.PartitionsByWorker();
  for (const auto& [id, worker] : shared_.state.workers) {
    const auto partitions = on.find(id.value());
    status.workers.push_back({.worker = id,
                              .address = worker.address,
                              .permits = worker.permits,
                              .partitions = partitions == on.end() ? 0 : partitions->second,
                              .draining = worker.draining,
                              .connected = shared_.workers.count(id) > 0,
                              .silent_for = liveness_.SilenceOf(id, now)});
  }
  for (const auto& [id, peer] : shared_.workers) {
    for (const DatasetWork& work : peer->work)
      status.work.push_back({id, shared_.state.workers.at(id).address, work});
  }
  for (const auto& [key, peer] : shared_.sessions) {
    const IterationState* iteration = shared_.state.FindIteration(key.first);
    const JobRecord* job = iteration == nullptr ? nullptr : shared_.state.FindJob(iteration->job);
    for (LinkStatus& link : links_.Of(key)) {
      if (job != nullptr) link.job = job->name;
      const auto worker = shared_.state.workers.find(link.counts.worker);
      if (worker != shared_.state.workers.end()) link.worker = worker->second.address;
      status.links.push_back(std::move(link));
    }
  }
  txn.WhenDurable(
      [done = std::move(done), status = std::move(status)](const absl::Status& durable) {
        if (!durable.ok()) return done(durable);
        done(status);
      });
}

}  // namespace penstock::control
