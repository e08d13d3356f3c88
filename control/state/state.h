// SPDX-License-Identifier: Apache-2.0
// Everything a dispatcher must know again after it was killed, as one value.
//
//   state.Apply(change)   the only way to alter it
//   Fits(state, change)   whether Apply may be called, for changes read from outside
//
// No lock, no clock, no I/O: the dispatcher decides under its lock, applies, and
// journals what it applied; recovery applies the same changes to the last
// snapshot and has the same state. What need not survive (who is connected,
// when it was last heard) is not here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "control/protocol/iteration_record.h"
#include "control/protocol/lives.h"
#include "control/protocol/saved_reading.h"
#include "control/protocol/session_messages.h"
#include "control/state/past_iteration.h"

namespace penstock::control {

// --- Records -------------------------------------------------------------------

// Constant once registered; shared by copies of the state.
struct DatasetRecord {
  std::string id;
  std::string definition;
  DatasetSummary summary;
  // Drawn when it was registered; the fingerprint in journals of older releases. Tells apart what
  // one id was given to, also where only the files differ, which no fingerprint covers.
  uint64_t edition = 0;
  friend bool operator==(const DatasetRecord&, const DatasetRecord&) = default;
};

struct JobRecord {
  JobId id;
  std::string name;
  std::string run_id;
  bool anonymous = false;
  // The definition that it reads, whatever its id is given to later.
  std::shared_ptr<const DatasetRecord> dataset;
  JobTerms terms;
  uint64_t seed = 0;
  std::string token;
  bool cancelled = false;
};

// The splits of one provider and one repetition of it.
struct ProviderKey {
  int32_t provider = 0;
  int64_t repetition = 0;  // of the pipeline, not the job's
  friend auto operator<=>(const ProviderKey&, const ProviderKey&) = default;
};

// What one partition was given, in order; the first `numbers` may be retired, and whole runs.
using GivenSplits = std::map<ProviderKey, SplitRun>;

// Where the splits that a bookmark still needs begin.
struct MarkedBookmark {
  Index index = 0;
  std::vector<SplitMark> marks;
  friend bool operator==(const MarkedBookmark&, const MarkedBookmark&) = default;
};

struct PartitionSplits {
  GivenSplits given;
  std::vector<MarkedBookmark> marks;  // of bookmarks that the record has, ascending
  PassesOver retired;                 // of runs that were given to it
  friend bool operator==(const PartitionSplits&, const PartitionSplits&) = default;
};

struct IterationState {
  IterationId id;
  JobId job;
  int64_t repetition = 0;
  Division division;
  std::vector<int64_t> leads;  // of partitions, see IterationCreated; shorter: 0
  protocol::IterationRecord record;
  std::vector<PartitionSplits> splits;        // [0] is partition 1; as many as partitions
  std::map<ProviderKey, int64_t> handed_out;  // of all partitions together
  // By provider: of repetitions below all splits were given out, and nobody needs them again. No
  // entries above are kept of these.
  PassesOver passes_over;
  std::optional<absl::Status> failure;  // why nobody can read it any more

  int64_t LeadOf(PartitionId partition) const {
    return partition.value() <= leads.size() ? leads[partition.value() - 1] : 0;
  }
  int64_t PassesOverOf(int32_t provider) const;
  // What that partition is; count 0 in other modes.
  ShardOf ShardOfPartition(PartitionId partition) const;
  friend bool operator==(const IterationState&, const IterationState&) = default;
};

struct WorkerRecord {
  WorkerId id;
  std::string address;
  std::vector<TransferOffer> offers;
  std::vector<std::string> tags;
  int32_t permits = 1;
  bool draining = false;
  int64_t place = -1;   // in the dispatcher's list of workers; -1: there is none
  Incarnation process;  // that it is in
  friend bool operator==(const WorkerRecord&, const WorkerRecord&) = default;
};

using Answer = std::variant<RegisterDatasetAnswer, JobAnswer>;

struct AnswerRecord {
  RequestId request;
  Answer answer;
  friend bool operator==(const AnswerRecord&, const AnswerRecord&) = default;
};

// --- Changes -------------------------------------------------------------------

struct LifeBegun {
  BegunLife begun;
};
struct DatasetRegistered {
  std::shared_ptr<const DatasetRecord> dataset;
};  // or replaced
struct DatasetUnregistered {
  std::string id;
};
struct JobCreated {
  JobRecord job;
};  // takes its name from a job that is over
struct JobCancelled {
  JobId job;
};
struct JobRemoved {
  JobId job;
};  // with its iterations
struct IterationCreated {
  IterationId iteration;
  JobId job;
  int64_t repetition = 0;
  Division division;
  // Of a restored coordinated read, by partition: so many elements behind where it begins,
  // or behind its bookmark at index 0, were in the rounds before; index 0 is the next one.
  std::vector<int64_t> leads = {};
  PassesOver passes_over = {};  // of a restored one
};
struct IterationAltered {
  IterationId iteration;
  protocol::IterationChange change;
};
// It is finished, and nobody is connected to it: a PastIteration stays.
struct IterationRetired {
  IterationId iteration;
};
// Somebody comes to a past one.
struct IterationRecalled {
  JobId job;
  int64_t repetition = 0;
};
struct IterationFailed {
  IterationId iteration;
  absl::Status status;
};
struct SplitsGiven {
  PartitionKey partition;
  SplitRun run;
};
struct BookmarkMarked {
  PartitionKey partition;
  MarkedBookmark bookmark;
};  // behind BookmarkAdded
struct WorkerRegistered {
  WorkerRecord worker;
};  // or told its offers anew
struct WorkerDraining {
  WorkerId worker;
};
struct WorkerGone {
  WorkerId worker;
};
struct Answered {
  AnswerRecord answer;
};

using Change =
    std::variant<LifeBegun, DatasetRegistered, DatasetUnregistered, JobCreated, JobCancelled,
                 JobRemoved, IterationCreated, IterationAltered, IterationFailed, SplitsGiven,
                 BookmarkMarked, WorkerRegistered, WorkerDraining, WorkerGone, Answered,
                 IterationRetired, IterationRecalled>;

// --- State ---------------------------------------------------------------------

struct State {
  std::vector<BegunLife> lives;  // of the journal, oldest first; the last kLivesKept
  uint64_t next_dataset = 1000;  // automatic ids; those taken by users are skipped
  uint64_t next_job = 1;
  uint64_t next_iteration = 1;
  std::map<std::string, std::shared_ptr<const DatasetRecord>> datasets;  // by id
  std::map<JobId, JobRecord> jobs;
  std::map<std::string, JobId> job_names;
  std::map<IterationId, IterationState> iterations;
  std::map<std::pair<JobId, int64_t>, IterationId> repetitions;  // of `iterations`
  std::map<std::pair<JobId, int64_t>, PastIteration> past;       // none of `iterations`
  std::map<WorkerId, WorkerRecord> workers;
  std::vector<AnswerRecord> answers;  // the last ones, oldest first

  // REQUIRES: Fits(*this, change).
  void Apply(const Change& change);

  // --- Questions; null where there is none ---
  Term term() const { return lives.empty() ? Term() : lives.back().life.term; }
  std::shared_ptr<const DatasetRecord> FindDataset(const std::string& id) const;
  // Also one that a job reads and the id no longer has. Edition 0: the one that it has.
  std::shared_ptr<const DatasetRecord> FindDataset(const std::string& id, uint64_t edition) const;
  const JobRecord* FindJob(JobId id) const;
  const JobRecord* FindJobByName(const std::string& name) const;
  const IterationState* FindIteration(IterationId id) const;
  const IterationState* FindIteration(JobId job, int64_t repetition) const;
  // A past one, as it was.
  std::optional<IterationState> FindPast(JobId job, int64_t repetition) const;
  // Numbers of its past repetitions, ascending.
  std::vector<int64_t> PastOf(JobId job) const;
  const WorkerRecord* FindWorker(WorkerId id) const;
  const Answer* FindAnswer(const RequestId& request) const;
  // Its iterations that are not past, in the order of their repetitions.
  std::vector<IterationId> IterationsOf(JobId job) const;
  // Nothing more can be read from it: cancelled, failed, or all its iterations
  // finished (at least one was begun).
  bool IsOver(const JobRecord& job) const;
  // How many partitions this worker has, over all iterations that go on.
  int32_t PartitionsOn(WorkerId worker) const;
  // The same of all workers that have some, by their value(), in one pass.
  std::unordered_map<uint64_t, int32_t> PartitionsByWorker() const;
};

// As one begins.
IterationState NewIteration(const IterationCreated& created, const JobTerms& terms);

// FailedPrecondition saying why `change` cannot follow on `state`.
absl::Status Fits(const State& state, const Change& change);
// Whose change it is, if it is one of an iteration that is there.
IterationId IterationOf(const Change& change);

// How many answers to requests are remembered, of all peers together: a repeat
// comes within a peer's time-out, and no fleet makes more requests in that time.
inline constexpr size_t kAnswersKept = 4096;

}  // namespace penstock::control
