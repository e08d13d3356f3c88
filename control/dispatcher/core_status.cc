// SPDX-License-Identifier: Apache-2.0
// Reports the status of a dispatcher, for people.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/transaction.h"
#include "control/policy/authorization.h"
#include "control/protocol/scoped_name.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// The number of a job's past iterations that are listed one by one. Earlier iterations are summed
// up.
constexpr size_t kPastShown = 100;

// `room`: what partitions wait for that have no worker although they could be placed.
PartitionStatus StatusOf(const IterationState& iteration, size_t p,
                         const protocol::IterationContext* context, const std::string& room) {
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
    status.waits_for = answered ? room : "its readers to report their elements";
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
                         const std::string& room) {
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
    status.partitions.push_back(StatusOf(iteration, p, context, room));
    if (!iteration.record.closed || iteration.record.finished) continue;
    const IndexSet of = protocol::Owed(iteration.record, PartitionId(p + 1));
    if (!of.empty()) owed.push_back(absl::StrCat("partition ", p + 1, " ", of.ToString()));
  }
  status.owed = absl::StrJoin(owed, ", ");
  return status;
}

// The tokens of pages, with the first job or dataset of the page.
constexpr char kJobPage[] = "job:";
constexpr char kDatasetPage[] = "dataset:";

// The parts of the core that know something for the status. The core's lock is held.
struct Sources {
  const SharedState& shared;
  const Scaling& scaling;
  const Liveness& liveness;
  const LinkMonitor& links;
  const ConsumerMonitor& consumers;
  const PartitionPlacer& placer;
  const DatasetRegistry& datasets;
  const JobRegistry& jobs;
  absl::Time now;
};

// Lists the objects of one page that the caller may see.
class StatusLister {
 public:
  StatusLister(const Sources& from, const StatusRequest& request, const Caller& caller,
               DispatcherStatus& to)
      : from_(from), request_(request), caller_(caller), to_(to) {
    if (request.page_size > 0) room_ = request.page_size;
  }

  absl::Status List() {
    absl::string_view token = request_.page_token;
    uint64_t job = 0;
    if (absl::ConsumePrefix(&token, kDatasetPage)) {
      ListDatasets(std::string(token));
    } else if (token.empty() ||
               (absl::ConsumePrefix(&token, kJobPage) && absl::SimpleAtoi(token, &job))) {
      if (request_.page_token.empty()) ListWorkers();
      ListJobs(JobId(job));
      if (to_.next_page_token.empty()) ListDatasets("");
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("page_token is '", request_.page_token,
                       "', but must be next_page_token of an answer of this dispatcher"));
    }
    return absl::OkStatus();
  }

 private:
  template <class Record>
  bool Shows(const Record& record, const std::string& name) const {
    return (request_.name_space.empty() || NamespaceOf(name) == request_.name_space) &&
           Authorize(Action::kGetStatus, caller_, record).ok();
  }
  bool ShowsWork(const DatasetWork& work) const {
    const auto dataset = state_.FindDataset(work.dataset_id);
    if (dataset != nullptr) return Shows(*dataset, dataset->id);
    // Its owner is not known any more.
    const std::string_view name_space = NamespaceOf(work.dataset_id);
    return (request_.name_space.empty() || name_space == request_.name_space) &&
           (!caller_.has_value() || caller_->role == Role::kOperator) &&
           Authorize(Action::kGetStatus, caller_, name_space).ok();
  }

  void ListJobs(JobId first);
  void ListDatasets(const std::string& first);
  void ListWorkers();
  JobStatus StatusOfJob(const JobRecord& job) const;
  void ListIterations(const JobRecord& job, JobStatus& to) const;
  void ListLinks(const JobRecord& job);
  // Returns the quota that holds the job back, as text; empty if there is none.
  std::string SlowedBy(const JobRecord& job) const;

  const Sources& from_;
  const SharedState& shared_ = from_.shared;
  const State& state_ = from_.shared.state;
  const StatusRequest& request_;
  const Caller& caller_;
  DispatcherStatus& to_;
  int64_t room_ = std::numeric_limits<int64_t>::max();  // on the page
};

void StatusLister::ListJobs(JobId first) {
  for (auto i = state_.jobs.lower_bound(first); i != state_.jobs.end(); ++i) {
    const JobRecord& job = i->second;
    if (!Shows(job, job.name)) continue;
    if (room_-- == 0) {
      to_.next_page_token = absl::StrCat(kJobPage, job.id.value());
      return;
    }
    to_.jobs.push_back(StatusOfJob(job));
    ListLinks(job);
  }
}

void StatusLister::ListDatasets(const std::string& first) {
  std::map<const DatasetRecord*, int64_t> jobs_of;
  for (const auto& [id, job] : state_.jobs) ++jobs_of[job.dataset.get()];
  for (auto i = state_.datasets.lower_bound(first); i != state_.datasets.end(); ++i) {
    const DatasetRecord& dataset = *i->second;
    if (!Shows(dataset, dataset.id)) continue;
    if (room_-- == 0) {
      to_.next_page_token = absl::StrCat(kDatasetPage, dataset.id);
      return;
    }
    to_.datasets.push_back({.dataset_id = dataset.id,
                            .fingerprint = dataset.summary.fingerprint,
                            .spec_text = dataset.summary.spec_text,
                            .cardinality = dataset.summary.cardinality,
                            .definition_bytes = static_cast<int64_t>(dataset.definition.size()),
                            .jobs = jobs_of[&dataset],
                            .goes_in = from_.datasets.GoesIn(dataset.id, from_.now),
                            .owner = dataset.owner});
  }
}

void StatusLister::ListWorkers() {
  const std::unordered_map<uint64_t, int32_t> on = state_.PartitionsByWorker();
  for (const auto& [id, worker] : state_.workers) {
    const auto partitions = on.find(id.value());
    to_.workers.push_back({.worker = id,
                           .address = worker.address,
                           .permits = worker.permits,
                           .partitions = partitions == on.end() ? 0 : partitions->second,
                           .draining = worker.draining,
                           .connected = shared_.workers.count(id) > 0,
                           .silent_for = from_.liveness.SilenceOf(id, from_.now)});
  }
  for (const auto& [id, peer] : shared_.workers) {
    for (const DatasetWork& work : peer->work) {
      if (ShowsWork(work)) to_.work.push_back({id, state_.workers.at(id).address, work});
    }
  }
}

JobStatus StatusLister::StatusOfJob(const JobRecord& job) const {
  JobStatus to = {.job = job.id,
                  .name = job.name,
                  .run_id = job.run_id,
                  .dataset_id = job.dataset->id,
                  .terms = job.terms,
                  .seed = job.seed,
                  .phase = job.cancelled        ? JobPhase::kCancelled
                           : state_.IsOver(job) ? JobPhase::kFinished
                                                : JobPhase::kActive,
                  .slowed_by = SlowedBy(job),
                  .owner = job.owner};
  if (const auto unread_for = from_.jobs.UnreadFor(job.id, from_.now)) {
    to.unread_for = *unread_for;
    to.goes_in = from_.jobs.TimeToLive(job) - to.unread_for;
  }
  const auto& feeds = from_.scaling.latest().jobs;
  if (const auto feed = feeds.find(job.id); feed != feeds.end()) to.feed = feed->second;
  ListIterations(job, to);
  return to;
}

void StatusLister::ListIterations(const JobRecord& job, JobStatus& to) const {
  const bool has_workers = !shared_.workers.empty();
  std::string room = from_.placer.FullNamespace(job);
  if (room.empty()) room = has_workers ? "room on a worker" : "a worker";
  const std::vector<int64_t> past = state_.PastOf(job.id);
  to.earlier_iterations = static_cast<int64_t>(past.size() - std::min(past.size(), kPastShown));
  for (size_t i = 0; i < past.size(); ++i) {
    if (static_cast<int64_t>(i) < to.earlier_iterations) {
      const auto& ends = state_.past.at({job.id, past[i]}).ends;
      to.earlier_elements += std::accumulate(ends.begin(), ends.end(), Index{0});
    } else {
      to.iterations.push_back(StatusOf(*state_.FindPast(job.id, past[i]), nullptr, room));
    }
  }
  for (IterationId of : state_.IterationsOf(job.id)) {
    const auto context = shared_.contexts.find(of);
    const protocol::IterationContext* known =
        context == shared_.contexts.end() ? nullptr : &context->second;
    to.iterations.push_back(StatusOf(state_.iterations.at(of), known, room));
    IterationStatus& its = to.iterations.back();
    if (!its.closed) its.waits_for = WaitsFor(from_.consumers.Lost(of, from_.now), known);
    if (its.waits_for.empty() && state_.GoesOn(state_.iterations.at(of)))
      its.waits_for = WaitsFor(its, has_workers);
  }
}

void StatusLister::ListLinks(const JobRecord& job) {
  for (IterationId of : state_.IterationsOf(job.id)) {
    for (auto session = shared_.sessions.lower_bound({of, ClientId()});
         session != shared_.sessions.end() && session->first.first == of; ++session) {
      for (LinkStatus& link : from_.links.Of(session->first)) {
        link.job = job.name;
        const auto worker = state_.workers.find(link.counts.worker);
        if (worker != state_.workers.end()) link.worker = worker->second.address;
        to_.links.push_back(std::move(link));
      }
    }
  }
}

std::string StatusLister::SlowedBy(const JobRecord& job) const {
  const JobQuota& quota = job.terms.quota;
  std::vector<std::string> bounds;
  int64_t permits = 0;
  for (const auto& [id, worker] : state_.workers) permits += std::max(worker.permits, 1);
  if (job.terms.mode == ShardingPolicy::kOff)
    permits = static_cast<int64_t>(shared_.workers.size());
  bool bytes = false, partitions = false;
  for (IterationId of : state_.IterationsOf(job.id)) {
    const IterationState& iteration = state_.iterations.at(of);
    if (!state_.GoesOn(iteration) || iteration.record.closed) continue;
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

}  // namespace

void Core::GetStatus(const StatusRequest& request, Done<DispatcherStatus> done,
                     const Caller& caller) {
  Transaction txn(*this, caller);
  DispatcherStatus status{.term = shared_.state.term(),
                          .release = PENSTOCK_VERSION,
                          .journal = journal_->name(),
                          .journal_sequence = shared_.sequence,
                          .wanted_workers = scaling_.latest().workers};
  const Sources from{shared_, scaling_,  liveness_, links_,        consumers_,
                     placer_, datasets_, jobs_,     options_.now()};
  absl::Status allowed = request.name_space.empty()
                             ? AuthorizeByRole(Action::kGetStatus, caller)
                             : Authorize(Action::kGetStatus, caller, request.name_space);
  allowed = txn.AuditRefusal(std::move(allowed));
  if (allowed.ok()) allowed = StatusLister(from, request, caller, status).List();
  txn.WhenDurable([done = std::move(done), allowed = std::move(allowed),
                   status = std::move(status)](const absl::Status& durable) {
    if (!durable.ok()) return done(durable);
    if (!allowed.ok()) return done(allowed);
    done(status);
  });
}

}  // namespace penstock::control
