// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/job_registry.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "control/dispatcher/iteration_end.h"
#include "control/dispatcher/messages/differences.h"
#include "control/dispatcher/messages/refusals.h"
#include "control/dispatcher/messages/texts.h"
#include "control/dispatcher/monitoring/counters.h"
#include "control/dispatcher/restoration.h"
#include "control/dispatcher/transaction.h"
#include "control/policy/authorization.h"
#include "control/policy/sharding.h"
#include "control/protocol/scoped_name.h"
#include "control/state/format.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// The maximum number of partitions that a request may ask for. It is limited because all these
// partitions are opened at once.
constexpr int64_t kMostPartitions = 1 << 12;

// Checks that the dataset can be read in `mode` at all.
absl::Status CheckMode(const DatasetRecord& dataset, ShardingPolicy mode) {
  if (mode != ShardingPolicy::kDynamic) return absl::OkStatus();  // static: see DivisionOf()
  if (dataset.summary.plan.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("dataset ", dataset.id,
                     " has no source that can be divided, which mode DYNAMIC requires; use OFF"));
  }
  for (const SplitProvider& provider : dataset.summary.plan) {
    if (provider.count < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "dataset ", dataset.id, ", node ", provider.node,
          ": the number of its splits is unknown, but mode DYNAMIC requires it; use OFF"));
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
      absl::StrCat("quota.max_permits applies only to modes OFF and DYNAMIC; mode ",
                   ToText(terms.mode), " needs a partition on every worker"));
}

// Before the upgrade is finalised, the journal may contain no shares.
absl::Status CheckFormat(const State& state, const JobTerms& terms) {
  if (terms.share == JobShare() || state.format >= kSharesFormat) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the release before knows no weight and priority of a job, and the upgrade from it is not "
      "finalised; run `penstock upgrade finalise`, or leave them out");
}

absl::Status CheckOrder(const JobTerms& terms) {
  const bool dynamic = terms.mode == ShardingPolicy::kDynamic;
  if (!terms.deterministic && terms.partitions == 0) return absl::OkStatus();
  if (terms.deterministic && terms.mode != ShardingPolicy::kOff &&
      terms.partitions <= kMostPartitions && (terms.partitions > 0 || !dynamic)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a deterministic order requires mode DYNAMIC or a static mode, and 1 to ", kMostPartitions,
      " partitions; got mode ", ToText(terms.mode), " and ", terms.partitions, " partitions"));
}

absl::Status CheckCache(const DatasetRecord& dataset, const GetOrCreateJobRequest& request) {
  if (!request.terms.cross_trainer_cache) return absl::OkStatus();
  if (request.name.empty()) {
    return absl::InvalidArgumentError("cross-trainer caching needs a named job");
  }
  if (dataset.summary.cardinality < 0) return absl::OkStatus();  // infinite or unknown
  return absl::InvalidArgumentError(
      absl::StrCat("cross-trainer caching requires an infinite dataset, but dataset ", dataset.id,
                   " has cardinality ", dataset.summary.cardinality));
}

// Handles a request that names an existing job. Returns true if the request joins that job, false
// if the request creates a new job in place of that job, and an error if neither is allowed.
// `is_read`: a client is reading the job.
absl::StatusOr<bool> Joins(const State& state, const JobRecord& job,
                           const GetOrCreateJobRequest& request, const DatasetRecord& dataset,
                           const Restoration* restoration, bool is_read) {
  if (job.run_id != request.run_id) {
    // The states contain the whole history of a restored job, so nobody needs the job that another
    // launch left.
    if (state.IsOver(job) || (restoration != nullptr && !is_read)) return false;
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job.name, " is not finished under run_id \"", job.run_id,
                     "\" and cannot begin under \"", request.run_id,
                     "\"; wait until it finishes, or run `penstock jobs cancel ", job.name, "`"));
  }
  if (job.cancelled) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", job.name, " was cancelled; use a different run_id, or run `penstock jobs remove ",
        job.name, "`"));
  }
  if (restoration != nullptr && !BeganWith(*restoration, state, job)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", job.name, " already exists under run_id \"", job.run_id,
        "\" and did not begin with these states; to restore them, use a run_id that no "
        "earlier launch has used"));
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
absl::Status JobRegistry::CheckPlaces(const Restoration& restoration, const JobTerms& terms) const {
  if (!IsStatic(terms.mode) || terms.target_workers != TargetWorkers::kLocal) {
    return absl::OkStatus();
  }
  const auto places = static_cast<int64_t>(options_.worker_addresses.size());
  for (const Restoration::Repetition& repetition : restoration.repetitions) {
    if (repetition.partitions.empty() || repetition.division.count == places) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the states to restore have ", repetition.division.count,
                     " shards of local workers, but the dispatcher's worker_addresses has ", places,
                     " entries; restore them with target_workers ANY"));
  }
  return absl::OkStatus();
}

absl::Status JobRegistry::CheckRights(const Caller& caller, const GetOrCreateJobRequest& request,
                                      const Restoration* restoration) const {
  const Action action = restoration == nullptr ? Action::kCreateJob : Action::kRestoreJob;
  RETURN_IF_ERROR(Authorize(action, caller, request.name_space));
  if (const JobRecord* there = state_.FindJobByName(request.name); there != nullptr) {
    RETURN_IF_ERROR(Authorize(action, caller, *there));
  }
  const auto dataset = state_.FindDataset(request.dataset_id);
  return dataset == nullptr ? absl::OkStatus() : Authorize(Action::kGetDataset, caller, *dataset);
}

absl::Status JobRegistry::CheckLimits(std::string_view name_space, const JobTerms& terms,
                                      const JobRecord* replaced) const {
  RETURN_IF_ERROR(options_.quotas.CheckTerms(name_space, terms));
  const int64_t jobs = state_.uses.Of(name_space).jobs;
  const bool ends_one = replaced != nullptr && !state_.IsOver(*replaced);
  return options_.quotas.CheckJobs(name_space, ends_one ? jobs - 1 : jobs);
}

absl::StatusOr<JobAnswer> JobRegistry::GetOrCreate(Transaction& txn,
                                                   const GetOrCreateJobRequest& request,
                                                   const Restoration* restoration) {
  absl::StatusOr<JobAnswer> answer = JobAnswer();
  absl::Status broken;
  txn.Guard([&] { answer = HandleRequest(txn, request, restoration); }, &broken);
  if (!broken.ok()) return broken;
  return answer;
}

JobAnswer JobRegistry::AnswerOf(const JobRecord& job, bool existed) const {
  return {.job = job.id,
          .name = job.name,
          .token = shared_.tokens.Of(job),
          .dataset_id = job.dataset->id,
          .seed = job.seed,
          .existed = existed};
}

absl::StatusOr<JobAnswer> JobRegistry::AnswerAgain(const Answer& before,
                                                   const Caller& caller) const {
  const auto* same = std::get_if<AnsweredJob>(&before);
  if (same == nullptr) {
    return absl::InvalidArgumentError(
        "the request has the number of an earlier, different request");
  }
  const JobRecord* job = state_.FindJob(same->job);
  if (job == nullptr) return absl::NotFoundError("the job of this repeated request was removed");
  RETURN_IF_ERROR(Authorize(Action::kCreateJob, caller, *job));
  return AnswerOf(*job, same->existed);
}

absl::StatusOr<JobAnswer> JobRegistry::HandleRequest(Transaction& txn,
                                                     const GetOrCreateJobRequest& request,
                                                     const Restoration* restoration) {
  RETURN_IF_ERROR(CheckTexts(request));
  RETURN_IF_ERROR(CheckScoped(request.name_space, request.name));
  RETURN_IF_ERROR(CheckRights(txn.caller(), request, restoration));
  if (const Answer* before = state_.FindAnswer(request.request)) {
    return AnswerAgain(*before, txn.caller());
  }
  auto dataset = state_.FindDataset(request.dataset_id);
  if (dataset == nullptr || !CheckScoped(request.name_space, dataset->id).ok()) {
    return absl::NotFoundError(absl::StrCat("Dataset id ", request.dataset_id, " not found"));
  }
  if (request.dataset_fingerprint.value_or(dataset->summary.fingerprint) !=
      dataset->summary.fingerprint) {
    return absl::NotFoundError(
        absl::StrCat("Dataset id ", request.dataset_id,
                     " no longer has the definition that was registered; register it again"));
  }
  const JobRecord* there = request.name.empty() ? nullptr : state_.FindJobByName(request.name);
  if (there != nullptr) {
    ASSIGN_OR_RETURN(const bool joins,
                     Joins(state_, *there, request, *dataset, restoration, IsRead(there->id)));
    if (joins) return AnswerOf(*there, /*existed=*/true);  // a repeated request finds its job
  }
  RETURN_IF_ERROR(CheckMode(*dataset, request.terms.mode));
  RETURN_IF_ERROR(CheckOrder(request.terms));
  RETURN_IF_ERROR(CheckQuota(request.terms));
  RETURN_IF_ERROR(CheckFormat(state_, request.terms));
  RETURN_IF_ERROR(CheckCache(*dataset, request));
  if (restoration != nullptr) {
    RETURN_IF_ERROR(CheckPlaces(*restoration, request.terms));
    RETURN_IF_ERROR(CheckRestoration(*restoration, dataset->summary, request.terms));
  }
  RETURN_IF_ERROR(CheckLimits(
      request.name_space.empty() ? kDefaultNamespace : std::string_view(request.name_space),
      request.terms, there));
  if (there != nullptr && !state_.IsOver(*there)) Cancel(txn, *there);

  JobRecord job{.id = JobId(state_.next_job),
                .name = request.name,
                .run_id = request.run_id,
                .anonymous = request.name.empty(),
                .dataset = dataset,
                .terms = request.terms,
                .seed = request.seed.has_value() ? *request.seed : options_.random(),
                .nonce = absl::StrCat(absl::Hex(options_.random(), absl::kZeroPad16),
                                      absl::Hex(options_.random(), absl::kZeroPad16)),
                .owner = txn.caller() ? txn.caller()->name : ""};
  if (job.anonymous) {
    job.name = ScopedName(request.name_space, absl::StrCat("anonymous_job_", job.id.value(), "_",
                                                           absl::Hex(options_.random())));
  }
  JobAnswer created = AnswerOf(job, /*existed=*/false);
  txn.Audit(restoration == nullptr ? "job_created" : "job_restored",
            {{"job", absl::StrCat(job.id.value())},
             {"name", job.name},
             {"dataset", dataset->id},
             {"mode", ToText(job.terms.mode)}});
  CountJob(job.terms);
  txn.Apply(JobCreated{std::move(job)});
  if (restoration != nullptr) BeginWith(txn, state_, created.job, *restoration);
  if (request.request.incarnation) {
    txn.Apply(Answered{{request.request, AnsweredJob{created.job, created.existed}}});
  }
  return created;
}

absl::StatusOr<SavedRepetition> JobRegistry::GetReading(Transaction& txn,
                                                        const GetReadingRequest& request) {
  const JobRecord* job = state_.FindJob(request.job);
  if (job == nullptr) {
    RETURN_IF_ERROR(AuthorizeByRole(Action::kGetReading, txn.caller()));
    return absl::NotFoundError(absl::StrCat(ToString(request.job),
                                            " is not known to this dispatcher; it was removed, or "
                                            "the dispatcher restarted without a journal"));
  }
  RETURN_IF_ERROR(Authorize(Action::kGetReading, txn.caller(), *job));
  RETURN_IF_ERROR(lives_.CheckHeard(*job, request.heard));
  SavedRepetition saved{.repetition = request.repetition};
  absl::Status broken;
  txn.Guard(
      [&] {
        if (const auto past = state_.FindPast(request.job, request.repetition)) {
          saved.version = shared_.sequence;
          Save(*past, protocol::MakeIterationContext(past->record), saved);
        } else if (const auto* iteration = state_.FindIteration(request.job, request.repetition)) {
          saved.version = shared_.sequence;
          Save(*iteration, txn.GetContext(iteration->id), saved);
        }
      },
      &broken);
  RETURN_IF_ERROR(broken);
  return saved;
}

absl::Status JobRegistry::Cancel(Transaction& txn, const std::string& name_or_id) {
  ASSIGN_OR_RETURN(const JobRecord* job, FindFor(Action::kCancelJob, txn.caller(), name_or_id));
  if (!job->cancelled) Cancel(txn, *job);
  return absl::OkStatus();
}

bool JobRegistry::IsRead(JobId job) const {
  for (IterationId id : state_.IterationsOf(job)) {
    const auto context = shared_.contexts.find(id);
    if (context == shared_.contexts.end()) continue;
    const protocol::ReaderList& readers = state_.iterations.at(id).record.readers;
    for (size_t r = 0; r < readers.size(); ++r) {
      if (readers[r].status == protocol::ReaderStatus::kActive && context->second.present[r])
        return true;
    }
  }
  return false;
}

void JobRegistry::Cancel(Transaction& txn, const JobRecord& job) {
  TakeFromWorkers(txn, job.id);
  for (IterationId id : state_.IterationsOf(job.id)) {
    txn.EndOf(state_.iterations.at(id))
        .CloseSessions(absl::CancelledError(absl::StrCat("job ", job.name, " was cancelled")));
  }
  txn.Audit("job_cancelled", {{"job", absl::StrCat(job.id.value())}, {"name", job.name}});
  txn.Apply(JobCancelled{job.id});
}

absl::Status JobRegistry::Remove(Transaction& txn, const std::string& name_or_id) {
  ASSIGN_OR_RETURN(const JobRecord* job, FindFor(Action::kRemoveJob, txn.caller(), name_or_id));
  if (!state_.IsOver(*job)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", job->name, " is not finished; run `penstock jobs cancel ", job->name, "` first"));
  }
  txn.Audit("job_removed", {{"job", absl::StrCat(job->id.value())}, {"name", job->name}});
  Forget(txn, job->id);
  return absl::OkStatus();
}

void JobRegistry::TakeFromWorkers(Transaction& txn, JobId job) {
  for (IterationId id : state_.IterationsOf(job)) {
    txn.EndOf(state_.iterations.at(id)).TakeFromWorkers();
  }
}

void JobRegistry::Forget(Transaction& txn, JobId job) {
  for (IterationId id : state_.IterationsOf(job)) {
    IterationEnd end = txn.EndOf(state_.iterations.at(id));
    end.CloseSessions(absl::CancelledError("the job was removed"));
    end.Forget();
  }
  idle_since_.erase(job);
  txn.Apply(JobRemoved{job});
}

absl::StatusOr<const JobRecord*> JobRegistry::FindFor(Action action, const Caller& caller,
                                                      const std::string& name_or_id) const {
  const JobRecord* job = state_.FindJobByName(name_or_id);
  uint64_t id = 0;
  const JobRecord* numbered =
      absl::SimpleAtoi(name_or_id, &id) ? state_.FindJob(JobId(id)) : nullptr;
  // If the name of one job is the number of another, the caller must not end the wrong one.
  if (job == nullptr || (numbered != nullptr && !Authorize(action, caller, *job).ok())) {
    job = numbered;
  } else if (numbered != nullptr && numbered != job && Authorize(action, caller, *numbered).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", name_or_id, "' is the name of job ", job->id.value(), " and the number of job ",
        numbered->name, "; use the number of the former or the name of the latter"));
  }
  if (job == nullptr) {
    RETURN_IF_ERROR(AuthorizeByRole(action, caller));
    return absl::NotFoundError(absl::StrCat("there is no job ", name_or_id));
  }
  RETURN_IF_ERROR(Authorize(action, caller, *job));
  return job;
}

}  // namespace penstock::control
