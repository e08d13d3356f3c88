// SPDX-License-Identifier: Apache-2.0
// The dispatcher without a network: requests and streams in, answers and pushes
// out. One lock; under it: check, decide (control/protocol, control/policy),
// apply, append. A message leaves when the record it depends on is durable, in the
// order it was decided. No I/O, no clock and no wait under the lock.
//
// Each event is one Transaction (transaction.h); the files core_*.cc are one subject each.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/dispatcher/links.h"
#include "control/dispatcher/step_audit.h"
#include "control/dispatcher/stream_writer.h"
#include "control/dispatcher/suspicions.h"
#include "control/journal/changes_proto.h"
#include "control/journal/journal.h"
#include "control/observe/event_log.h"
#include "control/policy/leases.h"
#include "control/policy/scaling.h"
#include "control/protocol/iteration_coordinator.h"
#include "control/protocol/saved_reading.h"
#include "control/protocol/session_messages.h"
#include "control/state/state.h"
#include "control/sync/mutex.h"
#include "penstock/server.h"

namespace penstock::control {

struct CoreOptions {
  absl::Duration client_timeout = absl::Seconds(60);
  absl::Duration worker_timeout = absl::Seconds(10);
  absl::Duration heartbeat_interval = absl::Seconds(1);
  absl::Duration job_gc_timeout = absl::Minutes(5);
  // Not empty: the workers that there may be, and with them the number of shards.
  std::vector<std::string> worker_addresses;
  DeploymentMode deployment_mode = DeploymentMode::kUnspecified;
  bool gc_dynamic_sharding_jobs = false;
  // Of what nobody reads and job_gc_timeout leaves: jobs, and datasets that no job reads.
  absl::Duration abandoned_job_ttl = absl::InfiniteDuration();
  absl::Duration dataset_ttl = absl::InfiniteDuration();
  // Longer than this between two sweeps, or than half of a timeout above: the dispatcher itself
  // stood still.
  absl::Duration stall = absl::Seconds(3);
  // A reader that cannot reach a worker for so long: its partitions move to others, if there are.
  absl::Duration unreached_timeout = absl::Seconds(15);
  // Records after which the journal gets a snapshot, and the most bytes of one.
  uint64_t records_per_snapshot = 20'000;
  size_t record_bytes = kMostRecordBytes;
  // Of the test that counts losses: a rule to break (control/protocol/rules.h).
  protocol::Broken broken = protocol::Broken::kNone;

  std::function<absl::Time()> now;
  std::function<uint64_t()> random;
  // Whether a connection to "host:port" is refused: nobody is there any more. May
  // take long, as looking up a name does; called by ProbeBrokenWorkers() alone.
  std::function<bool(const std::string& address)> port_refuses;
  // The journal cannot write; called once, nothing is answered any more.
  std::function<void(const absl::Status&)> on_failure;
  std::shared_ptr<EventLog> events;
};

// Counts a message from when it is here until it is dealt with.
class Arriving {
 public:
  explicit Arriving(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Arriving() { --count_; }
  Arriving(const Arriving&) = delete;
  Arriving& operator=(const Arriving&) = delete;

 private:
  std::atomic<int>& count_;
};

// A stream, and the session or worker that it turned out to be. Its fields are
// the core's, under its lock.
struct ClientPeer {
  std::shared_ptr<ClientStreamWriter> writer;
  // Where some wait for the lock their sender lives, however long ago it was heard. Not under the
  // lock.
  std::atomic<int> arriving = 0;
  IterationId iteration;  // none before its hello and after its end
  ClientId client;
  Incarnation incarnation;
  Incarnation process;
  int64_t consumer = -1;  // its number in a coordinated read
  bool at_quota = false;  // as of its last heartbeat

  // A heartbeat renews the lease once the journal has taken a record that was appended behind it:
  // a dispatcher whose folder another one has taken gives nobody more time than that one counts.
  uint64_t renewed = 0;  // the last such heartbeat
  struct Beat {
    uint64_t counter = 0;  // 0: none waits
    uint64_t behind = 0;   // the last record when it came
    absl::Time since;
  } waiting;
};
struct WorkerPeer {
  std::shared_ptr<WorkerStreamWriter> writer;
  std::atomic<int> arriving = 0;  // as above
  WorkerId worker;                // none before its hello and after its end
  std::vector<DatasetWork> work;  // as of its last heartbeat
};

class Transaction;

// Any thread may call any method. Callbacks come from the journal's thread or
// inside a call, in order, one at a time; they must not block.
class Core {
 public:
  template <class Answer>
  using Done = std::function<void(absl::StatusOr<Answer>)>;
  using DoneEmpty = std::function<void(absl::Status)>;

  // Recovers what the journal holds and begins a new term. DataLoss if that
  // cannot be applied.
  static absl::StatusOr<std::unique_ptr<Core>> Open(CoreOptions options,
                                                    std::unique_ptr<Journal> journal);
  ~Core();  // everything that still waits is answered Unavailable

  // --- Requests ---
  void RegisterDataset(const RegisterDatasetRequest& request, Done<RegisterDatasetAnswer> done);
  void GetDataset(const std::string& id, uint64_t edition, Done<GetDatasetAnswer> done);
  void UnregisterDataset(const std::string& id, DoneEmpty done);
  void GetOrCreateJob(const GetOrCreateJobRequest& request, Done<JobAnswer> done);
  void RestoreJob(const RestoreJobRequest& request, Done<JobAnswer> done);
  void GetReading(const GetReadingRequest& request, Done<SavedRepetition> done);
  void CancelJob(const std::string& name_or_id, DoneEmpty done);
  void RemoveJob(const std::string& name_or_id, DoneEmpty done);
  void GetStatus(Done<DispatcherStatus> done);

  // --- Streams ---
  std::shared_ptr<ClientPeer> OpenClient(std::shared_ptr<ClientStreamWriter> writer);
  void OnMessage(const std::shared_ptr<ClientPeer>& peer, ClientUp message);
  void OnClosed(const std::shared_ptr<ClientPeer>& peer);
  // A message on the stream cannot be read; `why` says what is wrong. The session ends.
  void OnUnreadable(const std::shared_ptr<ClientPeer>& peer, const absl::Status& why);
  // Streams that end from now on do so since the dispatcher does: nobody is suspected for that.
  void BeginToLeave();
  std::shared_ptr<WorkerPeer> OpenWorker(std::shared_ptr<WorkerStreamWriter> writer);
  void OnMessage(const std::shared_ptr<WorkerPeer>& peer, WorkerUp message);
  void OnClosed(const std::shared_ptr<WorkerPeer>& peer);
  // A message on the stream cannot be read; `why` says what is wrong. Only the stream ends: the
  // worker opens another one and repeats what it has to say.
  void OnUnreadable(const std::shared_ptr<WorkerPeer>& peer, const absl::Status& why);

  // --- Time ---
  // Finds who is dead, and jobs that nobody needs; to be called every fraction of
  // a second, by one thread.
  void Sweep();
  // Finds who need not be waited for; to be called as often, by another thread: it
  // takes as long as port_refuses() does, and leases have to run out meanwhile.
  void ProbeBrokenWorkers();

  int NumWorkers() const;  // connected
  uint64_t sequence() const;

 private:
  friend class Transaction;
  using SessionKey = std::pair<IterationId, ClientId>;
  // Of a partition since it last got further: how often it failed, and whom it avoids for that; how
  // often its worker died, and died with nothing else on it.
  struct Failures {
    int count = 0;
    std::vector<WorkerId> on;  // each once
    int deaths = 0;
    int deaths_alone = 0;
  };
  using Link = std::tuple<IterationId, ClientId, WorkerId>;

  Core(CoreOptions options, std::unique_ptr<Journal> journal);
  absl::Status Recover() REQUIRES(mu_);
  void OnDurable(absl::StatusOr<uint64_t> sequence);
  void Deliver();

  // core_avoiding.cc
  // The worker has died, and what it ran may be why. To be called while the record still names it.
  void NoteDeath(Transaction& txn, WorkerId worker) REQUIRES(mu_);
  // Whether the partition gets a worker for itself, and which that is, if there is one.
  bool RunsAlone(const PartitionKey& key) const REQUIRES(mu_);
  WorkerId ReservedFor(const PartitionKey& key) const REQUIRES(mu_);
  bool IsReserved(WorkerId worker) const REQUIRES(mu_);  // for such a one
  // Finds workers for those that are to be placed, and takes from them what they have.
  void Reserve(Transaction& txn, const IterationState& iteration) REQUIRES(mu_);
  void RelieveAllOn(Transaction& txn, const IterationState& iteration, WorkerId worker,
                    const PartitionKey& but) REQUIRES(mu_);
  // Whether one that would run alone is placed there beside others, since a short while; and where
  // of `usable` a partition that failed may be placed beside others.
  bool IsTrying(WorkerId worker) const REQUIRES(mu_);
  std::vector<WorkerId> WorkersToTry(const PartitionKey& key, std::vector<WorkerId> usable) const
      REQUIRES(mu_);
  void EndReservations(Transaction& txn) REQUIRES(mu_);
  void NoteLinks(const ClientPeer& peer, const std::vector<LinkCounts>& links, absl::Time now)
      REQUIRES(mu_);
  bool ReachesOthers(const SessionKey& key) const REQUIRES(mu_);
  bool HasOtherWorkers(const IterationState& iteration, WorkerId but) const REQUIRES(mu_);
  // Places partitions of workers anew that one of their readers could not reach for a while:
  // elsewhere, if it reaches others; else so that other readers get what is in doubt.
  void MoveFromUnreached(Transaction& txn, absl::Time now) REQUIRES(mu_);

  // core_clients.cc
  // Also a past one, which is recalled. Null: it was never begun.
  const IterationState* FindOrRecall(Transaction& txn, JobId job, int64_t repetition) REQUIRES(mu_);
  void Handle(Transaction& txn, const std::shared_ptr<ClientPeer>& peer, const ClientUp& message)
      REQUIRES(mu_);
  void OnHello(Transaction& txn, const std::shared_ptr<ClientPeer>& peer, const ClientHello& hello)
      REQUIRES(mu_);
  // Notes what the heartbeat renews. True: it is answered when the journal has taken a record, for
  // which the one that waits has waited long enough.
  bool NoteHeartbeat(ClientPeer& peer, uint64_t counter, absl::Time now) const REQUIRES(mu_);
  // Of all partitions that a message tells of at once: what follows is as much work as for one.
  void OnReports(Transaction& txn, const ClientPeer& peer,
                 absl::Span<const PartitionReport> reports) REQUIRES(mu_);
  void OnCommit(Transaction& txn, const std::shared_ptr<ClientPeer>& peer, const Commit& commit)
      REQUIRES(mu_);
  void OnLeave(Transaction& txn, const ClientPeer& peer, const Leave& leave) REQUIRES(mu_);
  void OnReceiveLimit(Transaction& txn, const ClientPeer& peer, const ReceiveLimit& limit)
      REQUIRES(mu_);
  void ForgetLease(const SessionKey& key) REQUIRES(mu_);
  void CloseSessions(Transaction& txn, IterationId iteration, const absl::Status& reason)
      REQUIRES(mu_);

  // core_consumers.cc
  // The consumer of that session is not heard: the others are told.
  void Suspect(Transaction& txn, const SessionKey& key, const Suspicions::Cause& cause)
      REQUIRES(mu_);
  void SuspectSilent(Transaction& txn, absl::Time now) REQUIRES(mu_);
  void DeclareConsumerDead(Transaction& txn, const SessionKey& key, absl::Time heard) REQUIRES(mu_);
  void HearConsumer(Transaction& txn, const ClientPeer& peer) REQUIRES(mu_);
  void NotifyLost(Transaction& txn, IterationId iteration) REQUIRES(mu_);
  void CountLost() REQUIRES(mu_);
  // Whether consumers differ; then `torn` says how.
  bool AuditSteps(const ClientPeer& peer, const std::vector<StepMark>& marks, std::string& torn)
      REQUIRES(mu_);
  // All consumers get the same error, for good.
  void EndTornReading(Transaction& txn, IterationId iteration, const std::string& torn)
      REQUIRES(mu_);

  // core_division.cc
  absl::Status CheckLocalWorkers(const JobRecord& job, const ClientHello& hello) const
      REQUIRES(mu_);
  // Unavailable while there is no worker to count.
  absl::StatusOr<Division> DivisionOf(const JobRecord& job, const ClientHello& hello) const
      REQUIRES(mu_);
  absl::StatusOr<int64_t> PlaceOf(const WorkerHello& hello) const REQUIRES(mu_);

  // core_jobs.cc. `restoration`: what the job begins with, or null.
  void AnswerJob(const GetOrCreateJobRequest& request, const Restoration* restoration,
                 Done<JobAnswer> done);
  absl::StatusOr<JobAnswer> GetOrCreate(Transaction& txn, const GetOrCreateJobRequest& request,
                                        const Restoration* restoration) REQUIRES(mu_);
  void Cancel(Transaction& txn, const JobRecord& job) REQUIRES(mu_);
  bool IsRead(JobId job) const REQUIRES(mu_);                   // over some stream
  bool IsConnected(IterationId iteration) const REQUIRES(mu_);  // somebody is
  void ForgetJob(Transaction& txn, JobId job) REQUIRES(mu_);
  // What is known of it besides its record. REQUIRES: it is there.
  void ForgetIteration(IterationId iteration) REQUIRES(mu_);
  void TakeFromWorkers(Transaction& txn, JobId job) REQUIRES(mu_);
  void TakeFromWorkers(Transaction& txn, const IterationState& iteration) REQUIRES(mu_);

  absl::Status CheckPlaces(const Restoration& restoration, const JobTerms& terms) const
      REQUIRES(mu_);

  // core_lives.cc
  void BeginLife(Transaction& txn) REQUIRES(mu_);
  PlacedPartition Placed(IterationId iteration, PartitionId partition, Placement placement) const
      REQUIRES(mu_);
  // Why somebody is refused who heard what this journal does not have.
  absl::Status Beyond(const Heard& heard) const REQUIRES(mu_);
  absl::Status OlderJournal(const JobRecord& job, const Heard& heard) const REQUIRES(mu_);
  // Ends what is read since an earlier life, in all jobs: what was given out in the part that this
  // journal lacks would be given out again. `heard`: what shows that it lacks some.
  void EndEarlierLives(Transaction& txn, const Heard& heard) REQUIRES(mu_);
  // Whether what was heard of that job is in this journal.
  absl::Status CheckHeard(const JobRecord& job, const Heard& heard) const REQUIRES(mu_);
  // Whether the hello is of that job, as this journal has it.
  absl::Status CheckLife(Transaction& txn, const JobRecord& job, const ClientHello& hello)
      REQUIRES(mu_);

  // core_restore.cc
  void Begin(Transaction& txn, JobId job, const Restoration& restoration) REQUIRES(mu_);

  // core_workers.cc
  void Handle(Transaction& txn, const std::shared_ptr<WorkerPeer>& peer, const WorkerUp& message)
      REQUIRES(mu_);
  void OnHello(Transaction& txn, const std::shared_ptr<WorkerPeer>& peer, const WorkerHello& hello)
      REQUIRES(mu_);
  void OnSplitRequest(Transaction& txn, const WorkerPeer& peer, const SplitRequest& request)
      REQUIRES(mu_);
  void OnBookmark(Transaction& txn, const WorkerPeer& peer, const Bookmark& bookmark) REQUIRES(mu_);
  void OnEnded(Transaction& txn, const WorkerPeer& peer, const Ended& ended) REQUIRES(mu_);
  void OnAtEnd(Transaction& txn, const WorkerPeer& peer, const AtEnd& at_end) REQUIRES(mu_);
  void OnFailed(Transaction& txn, const WorkerPeer& peer, const PartitionFailed& failed)
      REQUIRES(mu_);
  // Nobody reads it any more; all are told `reason`.
  void FailIteration(Transaction& txn, const IterationState& iteration, const absl::Status& reason)
      REQUIRES(mu_);
  // Whether a worker is left that may run what failed so often, or none at all: one may come.
  bool SomebodyMayRun(const IterationState& iteration, const protocol::IterationContext& context,
                      PartitionId partition, const Failures& failures) const REQUIRES(mu_);
  void OnDrain(Transaction& txn, const WorkerPeer& peer) REQUIRES(mu_);
  // `died`: it did not leave of itself.
  void LoseWorker(Transaction& txn, WorkerId worker, const std::string& reason, bool died = true)
      REQUIRES(mu_);

  // core_sweep.cc
  absl::Duration Stall() const;
  // A hello was accepted. `recovered`: the first of somebody that this life knows from the journal.
  void NoteHello(bool recovered, absl::Time now) REQUIRES(mu_);
  void ExpireLeases(Transaction& txn, absl::Time now) REQUIRES(mu_);
  void CollectJobs(Transaction& txn, absl::Time now) REQUIRES(mu_);
  // Finished iterations that nobody is connected to any more.
  void RetireIterations(Transaction& txn) REQUIRES(mu_);
  void CollectDatasets(Transaction& txn, absl::Time now) REQUIRES(mu_);
  void EstimateWorkers(Transaction& txn, absl::Time now) REQUIRES(mu_);
  bool Collectable(const JobRecord& job) const REQUIRES(mu_);
  // How long it stays while nobody reads it.
  absl::Duration TimeToLive(const JobRecord& job) const REQUIRES(mu_);
  std::string OwedOf(JobId job) const REQUIRES(mu_);  // in words; empty: nothing

  std::vector<WorkerId> UsableWorkers() const REQUIRES(mu_);
  // Those that a client of the iteration reads.
  std::vector<WorkerId> UsableWorkers(const IterationState& iteration) const REQUIRES(mu_);
  bool GoesOn(const IterationState& iteration) const REQUIRES(mu_);  // neither failed nor cancelled
  // Which of the job's bounds holds it back, in words; empty: none.
  std::string SlowedBy(const JobRecord& job) const REQUIRES(mu_);
  const JobRecord* FindJobByText(const std::string& name_or_id) const REQUIRES(mu_);

  const CoreOptions options_;
  std::unique_ptr<Journal> journal_;  // constant until the end

  mutable Mutex mu_;
  State state_ GUARDED_BY(mu_);
  std::map<IterationId, protocol::IterationContext> contexts_ GUARDED_BY(mu_);
  std::map<SessionKey, std::shared_ptr<ClientPeer>> sessions_ GUARDED_BY(mu_);
  std::map<WorkerId, std::shared_ptr<WorkerPeer>> workers_ GUARDED_BY(mu_);
  Leases<SessionKey> client_leases_ GUARDED_BY(mu_);
  Leases<WorkerId> worker_leases_ GUARDED_BY(mu_);
  Links links_ GUARDED_BY(mu_);  // of whoever has a lease
  Suspicions suspicions_ GUARDED_BY(mu_);
  StepAudit audit_ GUARDED_BY(mu_);
  Scaling scaling_ GUARDED_BY(mu_);
  absl::Time estimated_ GUARDED_BY(mu_) = absl::InfinitePast();
  std::map<PartitionKey, Failures> failures_ GUARDED_BY(mu_);
  std::map<WorkerId, PartitionKey> alone_ GUARDED_BY(mu_);  // workers for one partition alone
  // What was placed last, and when, of those for which there was no such worker.
  std::map<WorkerId, std::pair<PartitionKey, absl::Time>> trials_ GUARDED_BY(mu_);
  std::map<Link, absl::Time> down_ GUARDED_BY(mu_);  // since when, as heartbeats have it
  // For whose sake partitions were placed anew; whether they avoid that worker.
  std::map<Link, bool> unreached_ GUARDED_BY(mu_);
  std::map<JobId, absl::Time> idle_since_ GUARDED_BY(mu_);
  std::map<std::string, absl::Time> unused_since_ GUARDED_BY(mu_);  // datasets
  bool leaving_ GUARDED_BY(mu_) = false;
  absl::Time last_sweep_ GUARDED_BY(mu_) = absl::InfinitePast();
  // Open transactions, also those that wait for mu_, and how often there was
  // none. While there is always one, what has come may not have been read yet.
  std::atomic<int> transactions_ = 0;
  std::atomic<uint64_t> idles_ = 0;
  uint64_t idles_seen_ GUARDED_BY(mu_) = 0;  // by the last sweep
  absl::Time idle_at_ GUARDED_BY(mu_) = absl::InfinitePast();
  bool overloaded_ GUARDED_BY(mu_) = false;
  // Whom the journal named and who has not come yet. They may all come at once, which takes its
  // time: their leases begin with the first hello of all, and anew with each of theirs.
  std::set<WorkerId> workers_to_come_ GUARDED_BY(mu_);
  std::set<SessionKey> clients_to_come_ GUARDED_BY(mu_);
  absl::Time to_come_since_ GUARDED_BY(mu_) = absl::InfiniteFuture();
  // Until then clients may go by a lease that an earlier life gave them.
  absl::Time leases_of_earlier_lives_ GUARDED_BY(mu_) = absl::InfinitePast();
  uint64_t membership_version_ GUARDED_BY(mu_) = 0;
  uint64_t sequence_ GUARDED_BY(mu_) = 0;
  IterationId first_iteration_ GUARDED_BY(mu_);  // that may begin in this life
  uint64_t snapshot_sequence_ GUARDED_BY(mu_) = 0;

  // Sent with OK once `sequence` is durable, else with why it is not.
  struct PendingReply {
    uint64_t sequence;
    std::function<void(const absl::Status&, uint64_t)> send;
  };
  std::deque<PendingReply> pending_replies_ GUARDED_BY(mu_);
  bool delivering_ GUARDED_BY(mu_) = false;
  absl::Status failed_ GUARDED_BY(mu_);

  std::atomic<uint64_t> durable_ = 0;
  std::atomic<std::thread::id> appending_{};  // in journal_->Append, under mu_
};

}  // namespace penstock::control
