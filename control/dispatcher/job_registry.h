// SPDX-License-Identifier: Apache-2.0
// Makes or joins jobs by name, restores them, divides them into shards, cancels them, keeps them
// while nobody reads them, and forgets them. The core's lock guards it. Its one reason to change:
// the rules for the life of a job.
#pragma once

#include <optional>

#include "absl/types/span.h"
#include "control/dispatcher/lives.h"
#include "control/dispatcher/shared_state.h"
#include "control/policy/authorization.h"
#include "control/policy/placing.h"
#include "control/protocol/saved_reading.h"

namespace penstock::control {

class JobRegistry {
 public:
  JobRegistry(const SharedState& shared, const Lives& lives) : shared_(shared), lives_(lives) {}

  // --- Requests (job_registry.cc) ---

  // `restoration`: the states that the job begins with, or null.
  absl::StatusOr<JobAnswer> GetOrCreate(Transaction& txn, const GetOrCreateJobRequest& request,
                                        const Restoration* restoration);
  absl::StatusOr<SavedRepetition> GetReading(Transaction& txn, const GetReadingRequest& request);
  absl::Status Cancel(Transaction& txn, const std::string& name_or_id);
  absl::Status Remove(Transaction& txn, const std::string& name_or_id);

  // --- Shards and their workers (job_division.cc) ---

  // Checks that a client that reads local workers has a local worker.
  absl::Status CheckLocalWorkers(const JobRecord& job, const ClientHello& hello) const;
  // Unavailable while the client reads none of the `usable` workers.
  absl::StatusOr<Division> DivisionOf(const JobRecord& job, const ClientHello& hello,
                                      absl::Span<const UsableWorker> usable) const;

  // --- Jobs and iterations that nobody reads (job_collection.cc) ---

  void NoteRead(JobId job) { idle_since_.erase(job); }
  // Retires finished iterations to which no client is connected.
  void RetireIterations(Transaction& txn);
  void Collect(Transaction& txn, absl::Time now);
  // Returns the time since the job was last read; nullopt if it is being read.
  std::optional<absl::Duration> UnreadFor(JobId job, absl::Time now) const;
  // Returns how long the job is kept while nobody reads it.
  absl::Duration TimeToLive(const JobRecord& job) const;

 private:
  absl::StatusOr<JobAnswer> HandleRequest(Transaction& txn, const GetOrCreateJobRequest& request,
                                          const Restoration* restoration);
  JobAnswer AnswerOf(const JobRecord& job, bool existed) const;
  // Answers a repeated request as `before`.
  absl::StatusOr<JobAnswer> AnswerAgain(const Answer& before, const Caller& caller) const;
  // Checks that the caller may make or join the job that `request` names, and read its dataset.
  absl::Status CheckRights(const Caller& caller, const GetOrCreateJobRequest& request,
                           const Restoration* restoration) const;
  // Checks the limits of a namespace that gets one more job, in place of `replaced` (may be null).
  absl::Status CheckLimits(std::string_view name_space, const JobTerms& terms,
                           const JobRecord* replaced) const;
  absl::Status CheckPlaces(const Restoration& restoration, const JobTerms& terms) const;
  void TakeFromWorkers(Transaction& txn, JobId job);
  void Cancel(Transaction& txn, const JobRecord& job);
  void Forget(Transaction& txn, JobId job);
  bool IsRead(JobId job) const;  // by a client with an open stream
  // Finds a job on which the caller may act.
  absl::StatusOr<const JobRecord*> FindFor(Action action, const Caller& caller,
                                           const std::string& name_or_id) const;
  bool Collectable(const JobRecord& job) const;
  std::string OwedOf(JobId job) const;  // for logs; empty: owes nothing

  const SharedState& shared_;
  const CoreOptions& options_ = shared_.options;
  const State& state_ = shared_.state;
  const Lives& lives_;
  std::map<JobId, absl::Time> idle_since_;
};

}  // namespace penstock::control
