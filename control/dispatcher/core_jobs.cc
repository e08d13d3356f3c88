// SPDX-License-Identifier: Apache-2.0
// Jobs: made or joined by name, cancelled, removed.
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/counters.h"
#include "control/dispatcher/differences.h"
#include "control/dispatcher/refusals.h"
#include "control/dispatcher/restoration.h"
#include "control/dispatcher/transaction.h"
#include "control/policy/sharding.h"
#include "control/protocol/scoped_name.h"
#include "penstock/status.h"

namespace penstock::control {
namespace {

// A job's partitions are all opened at once, whatever a request asks for.
constexpr int64_t kMostPartitions = 1 << 12;

// Checks that a dataset can be read in that mode at all.
absl::Status CheckMode(const DatasetRecord& dataset, ShardingPolicy mode) {
  if (mode != ShardingPolicy::kDynamic) return absl::OkStatus();  // static: DivisionOf
  if (dataset.summary.plan.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("dataset ", dataset.id,
                     " has no source that can be divided, as mode DYNAMIC needs; use OFF"));
  }
  for (const SplitProvider& provider : dataset.summary.plan) {
    if (provider.count < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("dataset ", dataset.id, ", node ", provider.node,
                       ": the number of its splits is not known, as mode DYNAMIC needs; use OFF"));
    }
  }
  return absl::OkStatus();
}

// In a static mode the number of partitions is fixed: the job cannot run with fewer.
absl::Status CheckQuota(const JobTerms& terms) {
  if (terms.quota.max_permits == 0 || terms.mode == ShardingPolicy::kOff ||
      terms.mode == ShardingPolicy::kDynamic) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("quota.max_permits bounds modes OFF and DYNAMIC; mode ", ToText(terms.mode),
                   " needs a partition on every worker"));
}

absl::Status CheckOrder(const JobTerms& terms) {
  const bool dynamic = terms.mode == ShardingPolicy::kDynamic;
  if (!terms.deterministic && terms.partitions == 0) return absl::OkStatus();
  if (terms.deterministic && terms.mode != ShardingPolicy::kOff &&
      terms.partitions <= kMostPartitions && (terms.partitions > 0 || !dynamic)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a deterministic order is in mode DYNAMIC or a static one, of 1 to ", kMostPartitions,
      " partitions; asked for: mode ", ToText(terms.mode), ", ", terms.partitions, " partitions"));
}

absl::Status CheckCache(const DatasetRecord& dataset, const GetOrCreateJobRequest& request) {
  if (!request.terms.cross_trainer_cache) return absl::OkStatus();
  if (request.name.empty()) {
    return absl::InvalidArgumentError("cross-trainer caching needs a named job");
  }
  if (dataset.summary.cardinality < 0) return absl::OkStatus();  // infinite or unknown
  return absl::InvalidArgumentError(
      absl::StrCat("cross-trainer caching requires an infinite dataset, and dataset ", dataset.id,
                   " has cardinality ", dataset.summary.cardinality));
}

JobAnswer AnswerOf(const JobRecord& job, bool existed) {
  return {.job = job.id,
          .name = job.name,
          .token = job.token,
          .dataset_id = job.dataset->id,
          .seed = job.seed,
          .existed = existed};
}

// Returns whether a request for an existing name joins that job (OK, true) or makes a new one in
// its place (OK, false), or the error. `is_read`: a client reads the job now.
absl::StatusOr<bool> Joins(const State& state, const JobRecord& job,
                           const GetOrCreateJobRequest& request, const DatasetRecord& dataset,
                           const Restoration* restoration, bool is_read) {
  if (job.run_id != request.run_id) {
    // The states contain the whole history of a restored job: nobody needs what another launch has
    // left.
    if (state.IsOver(job) || (restoration != nullptr && !is_read)) return false;
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job.name, " is not finished under run_id \"", job.run_id,
                     "\" and cannot begin under \"", request.run_id,
                     "\"; wait for it, or `penstock jobs cancel ", job.name, "`"));
  }
  if (job.cancelled) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", job.name, " was cancelled; give another run_id, or `penstock jobs remove ",
        job.name, "`"));
  }
  if (restoration != nullptr && !BeganWith(*restoration, state, job)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", job.name, " is there under run_id \"", job.run_id, "\" and did not begin with ",
        "these states; restore them under a run_id of this launch"));
  }
  if (std::string differences = Differences(job, request, dataset); !differences.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Tried to create job with name ", job.name,
                     ", but found an existing job with different parameters: ", differences));
  }
  return true;
}

}  // namespace

// Checks that each shard of a local worker has a place in worker_addresses.
absl::Status Core::CheckPlaces(const Restoration& restoration, const JobTerms& terms) const {
  if (!IsStatic(terms.mode) || terms.target_workers != TargetWorkers::kLocal) {
    return absl::OkStatus();
  }
  const auto places = static_cast<int64_t>(options_.worker_addresses.size());
  for (const Restoration::Repetition& repetition : restoration.repetitions) {
    if (repetition.partitions.empty() || repetition.division.count == places) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the states to restore are of ", repetition.division.count,
                     " shards of local workers, and the dispatcher's worker_addresses name ",
                     places, ": restore them with target_workers ANY"));
  }
  return absl::OkStatus();
}

void Core::GetOrCreateJob(const GetOrCreateJobRequest& asked, Done<JobAnswer> done) {
  GetOrCreateJobRequest request = asked;
  if (request.terms.target_workers == TargetWorkers::kAuto && IsStatic(request.terms.mode) &&
      options_.deployment_mode == DeploymentMode::kColocated) {
    request.terms.target_workers = TargetWorkers::kLocal;
  }
  AnswerJob(request, nullptr, std::move(done));
}

void Core::RestoreJob(const RestoreJobRequest& request, Done<JobAnswer> done) {
  AnswerJob(request.job, &request.restoration, std::move(done));
}

void Core::AnswerJob(const GetOrCreateJobRequest& request, const Restoration* restoration,
                     Done<JobAnswer> done) {
  Transaction txn(*this);
  absl::StatusOr<JobAnswer> answer = JobAnswer();
  absl::Status broken;
  txn.Guard([&]() REQUIRES(mu_) { answer = GetOrCreate(txn, request, restoration); }, &broken);
  if (!broken.ok()) answer = broken;
  txn.WhenDurable([done = std::move(done), answer](const absl::Status& durable) {
    done(durable.ok() ? answer : durable);
  });
}

absl::StatusOr<JobAnswer> Core::GetOrCreate(Transaction& txn, const GetOrCreateJobRequest& request,
                                            const Restoration* restoration) {
  if (const Answer* before = state_.FindAnswer(request.request)) {
    if (const auto* same = std::get_if<JobAnswer>(before)) return *same;
    return absl::InvalidArgumentError("the request's number was another request's");
  }
  RETURN_IF_ERROR(CheckScoped(request.name_space, request.name));
  auto dataset = state_.FindDataset(request.dataset_id);
  if (dataset == nullptr || !CheckScoped(request.name_space, dataset->id).ok()) {
    return absl::NotFoundError(absl::StrCat("Dataset id ", request.dataset_id, " not found"));
  }
  if (request.dataset_fingerprint.value_or(dataset->summary.fingerprint) !=
      dataset->summary.fingerprint) {
    return absl::NotFoundError(
        absl::StrCat("Dataset id ", request.dataset_id,
                     " is another dataset by now than the one that was registered; register it "
                     "again"));
  }
  const JobRecord* there = request.name.empty() ? nullptr : state_.FindJobByName(request.name);
  if (there != nullptr) {
    ASSIGN_OR_RETURN(const bool joins,
                     Joins(state_, *there, request, *dataset, restoration, IsRead(there->id)));
    if (joins) return AnswerOf(*there, /*existed=*/true);  // a repeated request finds it again
  }
  RETURN_IF_ERROR(CheckMode(*dataset, request.terms.mode));
  RETURN_IF_ERROR(CheckOrder(request.terms));
  RETURN_IF_ERROR(CheckQuota(request.terms));
  RETURN_IF_ERROR(CheckCache(*dataset, request));
  if (restoration != nullptr) {
    RETURN_IF_ERROR(CheckPlaces(*restoration, request.terms));
    RETURN_IF_ERROR(CheckRestoration(*restoration, dataset->summary, request.terms));
  }
  if (there != nullptr && !state_.IsOver(*there)) Cancel(txn, *there);

  JobRecord job{.id = JobId(state_.next_job),
                .name = request.name,
                .run_id = request.run_id,
                .anonymous = request.name.empty(),
                .dataset = dataset,
                .terms = request.terms,
                .seed = request.seed.has_value() ? *request.seed : options_.random(),
                .token = absl::StrCat(absl::Hex(options_.random(), absl::kZeroPad16),
                                      absl::Hex(options_.random(), absl::kZeroPad16))};
  if (job.anonymous) {
    job.name = ScopedName(request.name_space, absl::StrCat("anonymous_job_", job.id.value(), "_",
                                                           absl::Hex(options_.random())));
  }
  JobAnswer created = AnswerOf(job, /*existed=*/false);
  txn.Log("job_created", {{"job", absl::StrCat(job.id.value())},
                          {"name", job.name},
                          {"dataset", dataset->id},
                          {"mode", ToText(job.terms.mode)}});
  CountJob(job.terms);
  txn.Apply(JobCreated{std::move(job)});
  if (restoration != nullptr) Begin(txn, created.job, *restoration);
  if (request.request.incarnation) txn.Apply(Answered{{request.request, created}});
  return created;
}

void Core::CancelJob(const std::string& name_or_id, DoneEmpty done) {
  Transaction txn(*this);
  absl::Status status;
  const JobRecord* job = FindJobByText(name_or_id);
  if (job == nullptr) {
    status = absl::NotFoundError(absl::StrCat("there is no job ", name_or_id));
  } else if (!job->cancelled) {
    Cancel(txn, *job);
  }
  txn.WhenDurable([done = std::move(done), status](const absl::Status& durable) {
    done(durable.ok() ? status : durable);
  });
}

bool Core::IsRead(JobId job) const {
  for (IterationId id : state_.IterationsOf(job)) {
    const auto context = contexts_.find(id);
    if (context == contexts_.end()) continue;
    const protocol::ReaderList& readers = state_.iterations.at(id).record.readers;
    for (size_t r = 0; r < readers.size(); ++r) {
      if (readers[r].status == protocol::ReaderStatus::kActive && context->second.present[r])
        return true;
    }
  }
  return false;
}

bool Core::IsConnected(IterationId iteration) const {
  const auto session = sessions_.lower_bound({iteration, ClientId()});
  return session != sessions_.end() && session->first.first == iteration;
}

void Core::Cancel(Transaction& txn, const JobRecord& job) {
  TakeFromWorkers(txn, job.id);
  for (IterationId id : state_.IterationsOf(job.id)) {
    CloseSessions(txn, id, absl::CancelledError(absl::StrCat("job ", job.name, " was cancelled")));
  }
  txn.Log("job_cancelled", {{"job", absl::StrCat(job.id.value())}, {"name", job.name}});
  txn.Apply(JobCancelled{job.id});
}

void Core::RemoveJob(const std::string& name_or_id, DoneEmpty done) {
  Transaction txn(*this);
  absl::Status status;
  const JobRecord* job = FindJobByText(name_or_id);
  if (job == nullptr) {
    status = absl::NotFoundError(absl::StrCat("there is no job ", name_or_id));
  } else if (!state_.IsOver(*job)) {
    status = absl::FailedPreconditionError(absl::StrCat(
        "job ", job->name, " is not finished; `penstock jobs cancel ", job->name, "` first"));
  } else {
    ForgetJob(txn, job->id);
  }
  txn.WhenDurable([done = std::move(done), status](const absl::Status& durable) {
    done(durable.ok() ? status : durable);
  });
}

void Core::TakeFromWorkers(Transaction& txn, const IterationState& iteration) {
  for (size_t p = 0; p < iteration.record.partitions.size(); ++p) {
    const protocol::PartitionRecord& partition = iteration.record.partitions[p];
    if (!partition.worker) continue;
    txn.Send(partition.worker,
             Unassign{Placed(iteration.id, PartitionId(p + 1), partition.placement)});
  }
}

void Core::TakeFromWorkers(Transaction& txn, JobId job) {
  for (IterationId id : state_.IterationsOf(job)) TakeFromWorkers(txn, state_.iterations.at(id));
}

void Core::ForgetIteration(IterationId id) {
  for (const protocol::ReaderRecord& reader : state_.iterations.at(id).record.readers)
    ForgetLease({id, reader.client});
  contexts_.erase(id);
  std::erase_if(unreached_,
                [&](const auto& entry) { return std::get<IterationId>(entry.first) == id; });
  std::erase_if(failures_, [&](const auto& entry) { return entry.first.iteration == id; });
}

void Core::ForgetJob(Transaction& txn, JobId job) {
  for (IterationId id : state_.IterationsOf(job)) {
    CloseSessions(txn, id, absl::CancelledError("the job was removed"));
    ForgetIteration(id);
  }
  idle_since_.erase(job);
  txn.Apply(JobRemoved{job});
}

}  // namespace penstock::control
