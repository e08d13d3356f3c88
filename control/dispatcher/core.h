// SPDX-License-Identifier: Apache-2.0
// The dispatcher without a network: it takes requests and streams, and gives answers and pushed
// messages. Under its one lock it checks, decides (control/protocol, control/policy), applies and
// appends. A message leaves once the record that it depends on is durable, in the order of the
// decisions. Under the lock it does no I/O, never waits, and reads no clock but CoreOptions::now.
//
// Each event is one Transaction (transaction.h). Each file core_*.cc has one subject.
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
  // If not empty: the addresses that workers may have. Their number is the number of shards.
  std::vector<std::string> worker_addresses;
  DeploymentMode deployment_mode = DeploymentMode::kUnspecified;
  bool gc_dynamic_sharding_jobs = false;
  // How long a job that job_gc_timeout spares is kept while nobody reads it, and how long a dataset
  // is kept while no job reads it.
  absl::Duration abandoned_job_ttl = absl::InfiniteDuration();
  absl::Duration dataset_ttl = absl::InfiniteDuration();
  // A longer time between two sweeps means that the dispatcher itself was stalled. For short
  // timeouts the bound is lower: Core::Stall().
  absl::Duration stall = absl::Seconds(3);
  // After a reader could not reach a worker for this long, its partitions move to other workers, if
  // there are any.
  absl::Duration unreached_timeout = absl::Seconds(15);
  // Records after which the journal gets a snapshot, and the most bytes of one record.
  uint64_t records_per_snapshot = 20'000;
  size_t record_bytes = kMostRecordBytes;
  // A rule to break, for the test that counts losses (control/protocol/rules.h).
  protocol::Broken broken = protocol::Broken::kNone;

  std::function<absl::Time()> now;
  std::function<uint64_t()> random;
  // Returns whether a connection to "host:port" is refused: no process listens there any more. May
  // take long, as a look-up of a name does. Only ProbeBrokenWorkers() calls it.
  std::function<bool(const std::string& address)> port_refuses;
  // Called once when the journal cannot be written; the dispatcher answers nothing afterwards.
  std::function<void(const absl::Status&)> on_failure;
  std::shared_ptr<EventLog> events;
};

// Counts a message from its arrival until it is handled.
class Arriving {
 public:
  explicit Arriving(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Arriving() { --count_; }
  Arriving(const Arriving&) = delete;
  Arriving& operator=(const Arriving&) = delete;

 private:
  std::atomic<int>& count_;
};

// A stream, and the session or worker that it belongs to. The core's lock guards the fields.
struct ClientPeer {
  std::shared_ptr<ClientStreamWriter> writer;
  // Messages that wait for the lock. While there are any, the sender is alive, however long ago it
  // was last heard. Not guarded by the lock.
  std::atomic<int> arriving = 0;
  IterationId iteration;  // none before its hello and after its end
  ClientId client;
  Incarnation incarnation;
  Incarnation process;
  int64_t consumer = -1;  // its number in a coordinated read
  bool at_quota = false;  // according to its last heartbeat

  // A heartbeat renews the lease once the journal has stored a record that was appended after it.
  // So a dispatcher whose work_dir another one has taken over gives no client more time than the
  // other one counts.
  uint64_t renewed = 0;  // the last such heartbeat
  struct Beat {
    uint64_t counter = 0;  // 0: none waits
    uint64_t behind = 0;   // sequence of the last record when it came
    absl::Time since;
  } waiting;
};
struct WorkerPeer {
  std::shared_ptr<WorkerStreamWriter> writer;
  std::atomic<int> arriving = 0;  // as in ClientPeer
  WorkerId worker;                // none before its hello and after its end
  std::vector<DatasetWork> work;  // according to its last heartbeat
};

class Transaction;

// The dispatcher's state and its handling of events. Any thread may call any method. Callbacks run
// on the journal's thread or inside a call, in order, one at a time; they must not block.
class Core {
 public:
  template <class Answer>
  using Done = std::function<void(absl::StatusOr<Answer>)>;
  using DoneEmpty = std::function<void(absl::Status)>;

  // Recovers what the journal holds and begins a new term. DataLoss if a record cannot be applied.
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
  // Ends the session because a message on its stream cannot be read; `why` is the reason.
  void OnUnreadable(const std::shared_ptr<ClientPeer>& peer, const absl::Status& why);
  // Declares that streams end from now on because the dispatcher stops: no client is suspected for
  // that.
  void BeginToLeave();
  std::shared_ptr<WorkerPeer> OpenWorker(std::shared_ptr<WorkerStreamWriter> writer);
  void OnMessage(const std::shared_ptr<WorkerPeer>& peer, WorkerUp message);
  void OnClosed(const std::shared_ptr<WorkerPeer>& peer);
  // Ends only the stream because a message on it cannot be read; `why` is the reason. The worker
  // opens another stream and repeats its messages.
  void OnUnreadable(const std::shared_ptr<WorkerPeer>& peer, const absl::Status& why);

  // --- Time ---
  // Finds dead clients and workers, and jobs that nobody needs. To be called several times a
  // second, by one thread.
  void Sweep();
  // Finds dead workers before their lease ends. To be called as often as Sweep(), by another
  // thread: it takes as long as port_refuses() does, and leases must expire meanwhile.
  void ProbeBrokenWorkers();

  int NumWorkers() const;  // connected
  uint64_t sequence() const;

 private:
  friend class Transaction;
  using SessionKey = std::pair<IterationId, ClientId>;
  // Failures of a partition since it last made progress: how often it failed and which workers it
  // avoids therefore; how often its worker died, and how often one died that ran nothing else.
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
  // Notes that the worker died, perhaps because of what it ran. To be called while the record still
  // names it.
  void NoteDeath(Transaction& txn, WorkerId worker) REQUIRES(mu_);
  // RunsAlone: whether the partition must have a worker for itself. ReservedFor: that worker, or
  // none.
  bool RunsAlone(const PartitionKey& key) const REQUIRES(mu_);
  WorkerId ReservedFor(const PartitionKey& key) const REQUIRES(mu_);
  bool IsReserved(WorkerId worker) const REQUIRES(mu_);  // for a partition that runs alone
  // Reserves a worker for each partition that must run alone and has no worker yet, and moves all
  // other partitions off it.
  void Reserve(Transaction& txn, const IterationState& iteration) REQUIRES(mu_);
  void RelieveAllOn(Transaction& txn, const IterationState& iteration, WorkerId worker,
                    const PartitionKey& but) REQUIRES(mu_);
  // IsTrying: whether a partition that should run alone was placed on the worker beside others a
  // short while ago. WorkersToTry: the workers of `usable` on which a failed partition may be
  // placed beside others.
  bool IsTrying(WorkerId worker) const REQUIRES(mu_);
  std::vector<WorkerId> WorkersToTry(const PartitionKey& key, std::vector<WorkerId> usable) const
      REQUIRES(mu_);
  void EndReservations(Transaction& txn) REQUIRES(mu_);
  void NoteLinks(const ClientPeer& peer, const std::vector<LinkCounts>& links, absl::Time now)
      REQUIRES(mu_);
  bool ReachesOthers(const SessionKey& key) const REQUIRES(mu_);
  bool HasOtherWorkers(const IterationState& iteration, WorkerId but) const REQUIRES(mu_);
  // Handles links on which a reader could not reach a worker for a while. The worker's partitions
  // are placed again: on another worker if the reader reaches others; otherwise so that other
  // readers get the elements in doubt.
  void MoveFromUnreached(Transaction& txn, absl::Time now) REQUIRES(mu_);

  // core_clients.cc
  // Returns the iteration, and recalls it if it is past. Null if it never began.
  const IterationState* FindOrRecall(Transaction& txn, JobId job, int64_t repetition) REQUIRES(mu_);
  void Handle(Transaction& txn, const std::shared_ptr<ClientPeer>& peer, const ClientUp& message)
      REQUIRES(mu_);
  void OnHello(Transaction& txn, const std::shared_ptr<ClientPeer>& peer, const ClientHello& hello)
      REQUIRES(mu_);
  // Notes what the heartbeat renews. Returns true if its answer must wait for a new record, because
  // the heartbeat that waits has waited long enough.
  bool NoteHeartbeat(ClientPeer& peer, uint64_t counter, absl::Time now) const REQUIRES(mu_);
  // Handles all reports of one message together: what follows takes as much work as for one report.
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
  // Tells the other consumers that the consumer of that session is not heard.
  void Suspect(Transaction& txn, const SessionKey& key, const Suspicions::Cause& cause)
      REQUIRES(mu_);
  void SuspectSilent(Transaction& txn, absl::Time now) REQUIRES(mu_);
  void DeclareConsumerDead(Transaction& txn, const SessionKey& key, absl::Time heard) REQUIRES(mu_);
  void HearConsumer(Transaction& txn, const ClientPeer& peer) REQUIRES(mu_);
  void NotifyLost(Transaction& txn, IterationId iteration) REQUIRES(mu_);
  void CountLost() REQUIRES(mu_);
  // Returns whether consumers differ; `torn` then describes how.
  bool AuditSteps(const ClientPeer& peer, const std::vector<StepMark>& marks, std::string& torn)
      REQUIRES(mu_);
  // Closes the sessions of all consumers with the same final error.
  void EndTornReading(Transaction& txn, IterationId iteration, const std::string& torn)
      REQUIRES(mu_);

  // core_division.cc
  absl::Status CheckLocalWorkers(const JobRecord& job, const ClientHello& hello) const
      REQUIRES(mu_);
  // Unavailable while there is no worker to count.
  absl::StatusOr<Division> DivisionOf(const JobRecord& job, const ClientHello& hello) const
      REQUIRES(mu_);
  absl::StatusOr<int64_t> PlaceOf(const WorkerHello& hello) const REQUIRES(mu_);

  // core_jobs.cc. `restoration`: the states that the job begins with, or null.
  void AnswerJob(const GetOrCreateJobRequest& request, const Restoration* restoration,
                 Done<JobAnswer> done);
  absl::StatusOr<JobAnswer> GetOrCreate(Transaction& txn, const GetOrCreateJobRequest& request,
                                        const Restoration* restoration) REQUIRES(mu_);
  void Cancel(Transaction& txn, const JobRecord& job) REQUIRES(mu_);
  bool IsRead(JobId job) const REQUIRES(mu_);                   // over some stream
  bool IsConnected(IterationId iteration) const REQUIRES(mu_);  // by any client
  void ForgetJob(Transaction& txn, JobId job) REQUIRES(mu_);
  // Forgets what is known of it outside its record. REQUIRES: it exists.
  void ForgetIteration(IterationId iteration) REQUIRES(mu_);
  void TakeFromWorkers(Transaction& txn, JobId job) REQUIRES(mu_);
  void TakeFromWorkers(Transaction& txn, const IterationState& iteration) REQUIRES(mu_);

  absl::Status CheckPlaces(const Restoration& restoration, const JobTerms& terms) const
      REQUIRES(mu_);

  // core_lives.cc
  void BeginLife(Transaction& txn) REQUIRES(mu_);
  PlacedPartition Placed(IterationId iteration, PartitionId partition, Placement placement) const
      REQUIRES(mu_);
  // The error for a process that has heard of records that this journal lacks.
  absl::Status Beyond(const Heard& heard) const REQUIRES(mu_);
  absl::Status OlderJournal(const JobRecord& job, const Heard& heard) const REQUIRES(mu_);
  // Fails all iterations, in all jobs, that began in an earlier life: the elements given out
  // according to the records that this journal lacks would be given out again. `heard` shows that
  // records are missing.
  void EndEarlierLives(Transaction& txn, const Heard& heard) REQUIRES(mu_);
  // Checks that this journal has what was heard of that job.
  absl::Status CheckHeard(const JobRecord& job, const Heard& heard) const REQUIRES(mu_);
  // Checks that the hello is for that job, as this journal has it.
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
  // Ends the iteration for good; all its clients get `reason`.
  void FailIteration(Transaction& txn, const IterationState& iteration, const absl::Status& reason)
      REQUIRES(mu_);
  // Returns whether some worker may still run a partition that failed this often. True while no
  // worker is usable, because one may come.
  bool SomebodyMayRun(const IterationState& iteration, const protocol::IterationContext& context,
                      PartitionId partition, const Failures& failures) const REQUIRES(mu_);
  void OnDrain(Transaction& txn, const WorkerPeer& peer) REQUIRES(mu_);
  // `died`: the worker did not leave by itself.
  void LoseWorker(Transaction& txn, WorkerId worker, const std::string& reason, bool died = true)
      REQUIRES(mu_);

  // core_sweep.cc
  absl::Duration Stall() const;
  // Notes an accepted hello. `recovered`: it is the first hello, in this life, of a process that
  // the journal names.
  void NoteHello(bool recovered, absl::Time now) REQUIRES(mu_);
  void ExpireLeases(Transaction& txn, absl::Time now) REQUIRES(mu_);
  void CollectJobs(Transaction& txn, absl::Time now) REQUIRES(mu_);
  // Retires finished iterations that no client is connected to.
  void RetireIterations(Transaction& txn) REQUIRES(mu_);
  void CollectDatasets(Transaction& txn, absl::Time now) REQUIRES(mu_);
  void EstimateWorkers(Transaction& txn, absl::Time now) REQUIRES(mu_);
  bool Collectable(const JobRecord& job) const REQUIRES(mu_);
  // How long the job is kept while nobody reads it.
  absl::Duration TimeToLive(const JobRecord& job) const REQUIRES(mu_);
  std::string OwedOf(JobId job) const REQUIRES(mu_);  // for logs; empty: nothing

  std::vector<WorkerId> UsableWorkers() const REQUIRES(mu_);
  // The usable workers that a client of the iteration reads.
  std::vector<WorkerId> UsableWorkers(const IterationState& iteration) const REQUIRES(mu_);
  bool GoesOn(const IterationState& iteration) const REQUIRES(mu_);  // neither failed nor cancelled
  // The quota that holds the job back, as text; empty: none.
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
  Links links_ GUARDED_BY(mu_);  // of clients that have a lease
  Suspicions suspicions_ GUARDED_BY(mu_);
  StepAudit audit_ GUARDED_BY(mu_);
  Scaling scaling_ GUARDED_BY(mu_);
  absl::Time estimated_ GUARDED_BY(mu_) = absl::InfinitePast();
  std::map<PartitionKey, Failures> failures_ GUARDED_BY(mu_);
  std::map<WorkerId, PartitionKey> alone_ GUARDED_BY(mu_);  // workers reserved for one partition
  // The partition that was last tried on a worker because none could be reserved for it, and when.
  std::map<WorkerId, std::pair<PartitionKey, absl::Time>> trials_ GUARDED_BY(mu_);
  std::map<Link, absl::Time> down_ GUARDED_BY(mu_);  // since when, by heartbeats
  // Links because of which partitions were placed again; the value: whether they avoid the worker.
  std::map<Link, bool> unreached_ GUARDED_BY(mu_);
  std::map<JobId, absl::Time> idle_since_ GUARDED_BY(mu_);
  std::map<std::string, absl::Time> unused_since_ GUARDED_BY(mu_);  // datasets
  bool leaving_ GUARDED_BY(mu_) = false;
  absl::Time last_sweep_ GUARDED_BY(mu_) = absl::InfinitePast();
  // Open transactions, including those that wait for mu_, and how often there was none. While there
  // is always one, received messages may still be unread.
  std::atomic<int> transactions_ = 0;
  std::atomic<uint64_t> idles_ = 0;
  uint64_t idles_seen_ GUARDED_BY(mu_) = 0;  // by the last sweep
  absl::Time idle_at_ GUARDED_BY(mu_) = absl::InfinitePast();
  bool overloaded_ GUARDED_BY(mu_) = false;
  // Workers and clients that the journal names and that have not said hello yet. They may all come
  // at once, which takes time: their leases begin at the first hello of all, and again at each
  // hello of one of them.
  std::set<WorkerId> workers_to_come_ GUARDED_BY(mu_);
  std::set<SessionKey> clients_to_come_ GUARDED_BY(mu_);
  absl::Time to_come_since_ GUARDED_BY(mu_) = absl::InfiniteFuture();
  // Until then clients may rely on a lease that an earlier life gave them.
  absl::Time leases_of_earlier_lives_ GUARDED_BY(mu_) = absl::InfinitePast();
  uint64_t membership_version_ GUARDED_BY(mu_) = 0;
  uint64_t sequence_ GUARDED_BY(mu_) = 0;
  IterationId first_iteration_ GUARDED_BY(mu_);  // the first that may begin in this life
  uint64_t snapshot_sequence_ GUARDED_BY(mu_) = 0;

  // Sent with OK once `sequence` is durable, otherwise with the reason why it is not.
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
