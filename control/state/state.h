// SPDX-License-Identifier: Apache-2.0
// All data that a dispatcher must still have after it has been killed, as one value.
//
//   state.Apply(change)   the only way to change it
//   Fits(state, change)   whether Apply may be called, for changes read from a journal
//
// No lock, no clock, no I/O. The dispatcher decides under its lock, applies the changes, and
// journals them. Recovery applies the same changes to the last snapshot and gets the same state.
// Data that need not survive (which peers are connected, when each was last heard from) are
// elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "control/protocol/iteration_record.h"
#include "control/protocol/lives.h"
#include "control/protocol/message_parts.h"
#include "control/protocol/requests.h"
#include "control/protocol/saved_reading.h"
#include "control/protocol/worker_messages.h"
#include "control/state/answers.h"
#include "control/state/namespace_use.h"
#include "control/state/past_iteration.h"
#include "control/state/placed_partitions.h"

namespace penstock::control {

// --- Records -------------------------------------------------------------------

// A registered dataset. Constant once registered; shared by copies of the state.
struct DatasetRecord {
  std::string id;
  std::string definition;
  DatasetSummary summary;
  // Distinguishes the definitions that had the same id, even if they differ only in their files,
  // which the fingerprint does not cover. Drawn when the dataset was registered; in journals of
  // older releases, the fingerprint.
  uint64_t edition = 0;
  std::string owner = {};  // the principal that registered it; empty: there was no auth_file
  friend bool operator==(const DatasetRecord&, const DatasetRecord&) = default;
};

struct JobRecord {
  JobId id;
  std::string name;
  std::string run_id;
  bool anonymous = false;
  // The definition that the job reads, even if its id is given to a different definition later.
  std::shared_ptr<const DatasetRecord> dataset;
  JobTerms terms;
  uint64_t seed = 0;
  // 128 random bits as hexadecimal digits, not secret. The job's token is made from them, with the
  // dispatcher's key. Empty: an older release made the job, and `token` is its token, the only
  // secret that a state can contain.
  std::string nonce;
  bool cancelled = false;
  std::string owner = {};  // the principal that created it; empty: there was no auth_file
  std::string token = {};

  // Returns whether a reader can still come with a token that is made with the key.
  bool needs_key() const { return !nonce.empty() && !cancelled; }
};

// Identifies the splits of one repetition of a provider.
struct ProviderKey {
  int32_t provider = 0;
  int64_t repetition = 0;  // within the pipeline; not the job's repetition
  friend auto operator<=>(const ProviderKey&, const ProviderKey&) = default;
};

// The splits that one partition was given, in order. The first numbers of a run, and whole runs,
// may be retired.
using GivenSplits = std::map<ProviderKey, SplitRun>;

// The first splits that a bookmark still needs, and the versions of the operations in it.
struct MarkedBookmark {
  Index index = 0;
  std::vector<SplitMark> marks;                // empty: unknown
  std::vector<PositionVersion> versions = {};  // other than the first ones
  bool is_empty() const { return marks.empty() && versions.empty(); }
  friend bool operator==(const MarkedBookmark&, const MarkedBookmark&) = default;
};

struct PartitionSplits {
  GivenSplits given;
  std::vector<MarkedBookmark>
      marks;           // for the record's bookmarks, ascending; empty ones are absent
  PassesOver retired;  // of the runs that the partition was given
  friend bool operator==(const PartitionSplits&, const PartitionSplits&) = default;
};

struct IterationState {
  IterationId id;
  JobId job;
  int64_t repetition = 0;
  Division division;
  std::vector<int64_t> leads;  // by partition, see IterationCreated; missing: 0
  protocol::IterationRecord record;
  std::vector<PartitionSplits> splits;        // [0] is partition 1; one per partition
  std::map<ProviderKey, int64_t> handed_out;  // all partitions together
  // By provider: all splits of the repetitions below this number were given out, and none is needed
  // again. `splits` and `handed_out` have no entries for these repetitions.
  PassesOver passes_over;
  std::optional<absl::Status> failure;  // the reason for which it can no longer be read

  int64_t LeadOf(PartitionId partition) const {
    return partition.value() <= leads.size() ? leads[partition.value() - 1] : 0;
  }
  int64_t PassesOverOf(int32_t provider) const;
  // Returns the partition's shard. Its count is 0 if partitions are not shards.
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
  int64_t place = -1;      // in the dispatcher's list of workers; -1: not listed
  Incarnation process;     // the process that the worker is in
  std::string owner = {};  // the principal that first used the id; empty: there was no auth_file
  friend bool operator==(const WorkerRecord&, const WorkerRecord&) = default;
};

// A worker that is gone, and the principal to which its id still belongs.
struct FormerWorker {
  WorkerId id;
  std::string owner;
  friend bool operator==(const FormerWorker&, const FormerWorker&) = default;
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
};  // takes the name from a job that is over, if any
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
  // For a restored coordinated read, by partition: the number of elements, after the partition's
  // beginning or after its bookmark at index 0, that belong to the rounds before the restore. The
  // element after these has index 0.
  std::vector<int64_t> leads = {};
  PassesOver passes_over = {};  // of a restored iteration
};
struct IterationAltered {
  IterationId iteration;
  protocol::IterationChange change;
};
// The iteration is finished, and no client is connected to it. Only a PastIteration is kept.
struct IterationRetired {
  IterationId iteration;
};
// A client connects to a past iteration, which becomes an IterationState again.
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
};  // follows BookmarkAdded
struct WorkerRegistered {
  WorkerRecord worker;
};  // also when the data about a known worker change
struct WorkerDraining {
  WorkerId worker;
};
struct WorkerGone {
  WorkerId worker;
};
struct Answered {
  AnswerRecord answer;
};
// From now on the journal may contain changes of this format (format.h).
struct FormatFinalised {
  uint32_t format = 0;
};

using Change =
    std::variant<LifeBegun, DatasetRegistered, DatasetUnregistered, JobCreated, JobCancelled,
                 JobRemoved, IterationCreated, IterationAltered, IterationFailed, SplitsGiven,
                 BookmarkMarked, WorkerRegistered, WorkerDraining, WorkerGone, Answered,
                 IterationRetired, IterationRecalled, FormatFinalised>;

// The format of journals that name none.
inline constexpr uint32_t kFirstFormat = 1;

// --- State ---------------------------------------------------------------------

struct State {
  std::vector<BegunLife> lives;    // of this journal, oldest first; at most kLivesKept
  uint32_t format = kFirstFormat;  // finalised: no change of a newer format is made
  uint64_t next_dataset = 1000;    // for automatic ids; skips ids that users chose
  uint64_t next_job = 1;
  uint64_t next_iteration = 1;
  std::map<std::string, std::shared_ptr<const DatasetRecord>> datasets;  // by id
  std::map<JobId, JobRecord> jobs;
  std::map<std::string, JobId> job_names;
  std::map<IterationId, IterationState> iterations;
  std::map<std::pair<JobId, int64_t>, IterationId> repetitions;  // of those in `iterations`
  std::map<std::pair<JobId, int64_t>, PastIteration> past;       // of those not in `iterations`
  std::map<WorkerId, WorkerRecord> workers;
  std::vector<FormerWorker> former_workers;  // the latest that had owners, oldest first
  Answers answers;
  // The partitions that have workers, of the iterations that are neither failed nor cancelled. It
  // follows from `iterations`; Apply() keeps it.
  PlacedPartitions placed;
  // Counts what each namespace holds. It follows from the other data; Apply() keeps it.
  NamespaceUses uses;

  // REQUIRES: Fits(*this, change).
  void Apply(const Change& change);

  // --- Queries; null if there is no such object ---
  Term term() const { return lives.empty() ? Term() : lives.back().life.term; }
  // Returns the id of the key from which tokens of jobs are made; 0: no job needs it.
  uint64_t NeededKey() const;
  std::shared_ptr<const DatasetRecord> FindDataset(const std::string& id) const;
  // Also finds a definition that a job still reads although its id was given to a different
  // definition. Edition 0: the definition that the id has now.
  std::shared_ptr<const DatasetRecord> FindDataset(const std::string& id, uint64_t edition) const;
  const JobRecord* FindJob(JobId id) const;
  const JobRecord* FindJobByName(const std::string& name) const;
  const IterationState* FindIteration(IterationId id) const;
  const IterationState* FindIteration(JobId job, int64_t repetition) const;
  // Returns a past iteration as it was.
  std::optional<IterationState> FindPast(JobId job, int64_t repetition) const;
  // Returns the numbers of the job's past repetitions, ascending.
  std::vector<int64_t> PastOf(JobId job) const;
  const WorkerRecord* FindWorker(WorkerId id) const;
  // Returns the principal to which the worker's id belongs; empty if it belongs to none.
  std::string OwnerOf(WorkerId id) const;
  const Answer* FindAnswer(const RequestId& request) const { return answers.Find(request); }
  // Returns the job's iterations that are not past, by repetition.
  std::vector<IterationId> IterationsOf(JobId job) const;
  // Returns whether no more elements can be read from the job, because it is cancelled or failed,
  // or because it has begun an iteration and all its iterations are finished.
  bool IsOver(const JobRecord& job) const;
  // Returns whether the iteration is neither failed nor cancelled.
  bool GoesOn(const IterationState& iteration) const {
    return !iteration.failure.has_value() && !jobs.at(iteration.job).cancelled;
  }
  // Returns the number of this worker's partitions, over all iterations that are neither failed nor
  // cancelled.
  int32_t PartitionsOn(WorkerId worker) const { return placed.CountOn(worker); }
  // Returns what `placed` must be, computed from `iterations`. For a state that was read, and for
  // tests.
  PlacedPartitions ComputePlaced() const;
  // Returns the job's part of `uses`, and all of `uses`, computed from the other data.
  NamespaceUses::OfJob UseOf(const JobRecord& job) const;
  NamespaceUses ComputeUses() const;
};

// Returns the initial state of the iteration.
IterationState NewIteration(const IterationCreated& created, const JobTerms& terms);

// Returns FailedPrecondition with the reason if `change` cannot be applied to `state`.
absl::Status Fits(const State& state, const Change& change);
// Returns the iteration that `change` names; an empty id if it names none.
IterationId IterationOf(const Change& change);

// The number of former workers whose owners are remembered. A worker that was only thought dead
// returns within minutes, and no fleet loses more workers than this in that time.
inline constexpr size_t kFormerWorkersKept = 4096;

}  // namespace penstock::control
