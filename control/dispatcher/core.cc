// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/core.h"

#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/monitoring/counters.h"
#include "control/dispatcher/transaction.h"
#include "control/journal/changes_proto.h"
#include "control/observe/fail_point.h"
#include "control/policy/sharding.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock::control {

Core::Core(CoreOptions options, std::unique_ptr<Journal> journal)
    : options_(std::move(options)),
      journal_(std::move(journal)),
      shared_{options_, durable_},
      liveness_(shared_),
      links_(shared_, liveness_),
      lives_(shared_),
      consumers_(shared_, liveness_),
      membership_(shared_),
      placer_(shared_, links_),
      datasets_(shared_),
      jobs_(shared_, lives_),
      sessions_(shared_, shared_.sessions, liveness_, links_, scaling_, consumers_, placer_, lives_,
                jobs_),
      workers_(shared_, shared_.workers, shared_.refusals, liveness_, scaling_, placer_, lives_) {}

Core::~Core() {
  journal_.reset();  // writes the appended records, and sends the messages that wait for them
  const absl::Status stopping = absl::UnavailableError("the dispatcher is stopping");
  std::deque<Replies::Pending> waiting;
  {
    MutexLock lock(mu_);
    replies_.Fail(stopping);
    waiting = replies_.TakeReady(durable_);
  }
  for (Replies::Pending& reply : waiting) reply.send(stopping, 0);
}

absl::StatusOr<std::unique_ptr<Core>> Core::Open(CoreOptions options,
                                                 std::unique_ptr<Journal> journal) {
  std::unique_ptr<Core> core(new Core(std::move(options), std::move(journal)));
  {
    MutexLock lock(core->mu_);
    RETURN_IF_ERROR(core->Recover());
  }
  RETURN_IF_ERROR(core->journal_->Start(
      [core = core.get()](absl::StatusOr<uint64_t> sequence) { core->OnDurable(sequence); }));
  {
    Transaction txn(*core);
    core->lives_.Begin(txn);
    const State& state = core->shared_.state;
    for (const auto& [id, iteration] : state.iterations) {
      if (!state.GoesOn(iteration) || iteration.record.closed) continue;
      txn.Guard([&, id = id, &iteration = iteration] {
        txn.Settle(id, protocol::OnDispatcherStarts(iteration.record, txn.GetContext(id)));
      });
    }
  }
  RETURN_IF_ERROR(core->journal_->WaitDurable(core->sequence()));
  return core;
}

absl::Status Core::Recover() {
  Recovered recovered = journal_->TakeRecovered();
  if (!recovered.snapshot.empty()) {
    ASSIGN_OR_RETURN(shared_.state, DecodeState(recovered.snapshot));
  }
  for (const Recovered::Record& record : recovered.records) {
    absl::Status applied = ApplyRecord(record.bytes, shared_.state);
    if (!applied.ok()) {
      return absl::Status(applied.code(), absl::StrCat("journal ", journal_->name(), ": record ",
                                                       record.sequence, ": ", applied.message()));
    }
    shared_.since_snapshot.bytes += record.bytes.size();
  }
  if (!recovered.cut.empty()) options_.events->Write({"cut", {{"what", recovered.cut}}});
  shared_.sequence = recovered.last_sequence();
  shared_.since_snapshot.records = recovered.records.size();
  shared_.snapshots.Begin(shared_.state);
  durable_ = recovered.last_sequence();
  ASSIGN_OR_RETURN(shared_.tokens, options_.job_tokens(shared_.state.NeededKey()));
  FailPoint("in_recovery");

  liveness_.Begin();
  workers_.Begin();
  placer_.room().Begin();
  return absl::OkStatus();
}

void Core::OnDurable(absl::StatusOr<uint64_t> sequence) {
  if (sequence.ok()) {
    FailPoint("durable_before_answer");
    durable_ = *sequence;
    if (appending_.load() != CurrentThread()) Deliver();
    return;
  }
  std::deque<Replies::Pending> waiting;
  {
    MutexLock lock(mu_);
    replies_.Fail(sequence.status());
    waiting = replies_.TakeReady(durable_);
  }
  options_.events->Write({"journal_failed", {{"why", std::string(sequence.status().message())}}});
  for (Replies::Pending& reply : waiting) reply.send(sequence.status(), 0);
  if (options_.on_failure) options_.on_failure(sequence.status());
}

void Core::Deliver() {
  MutexLock lock(mu_);
  if (!replies_.BeginDelivery()) return;
  for (auto ready = replies_.TakeReady(durable_); !ready.empty();
       ready = replies_.TakeReady(durable_)) {
    const absl::Status failed = replies_.failed();
    lock.unlock();
    for (Replies::Pending& reply : ready) reply.send(failed, reply.sequence);
    lock.lock();
  }
  replies_.EndDelivery();
}

int Core::NumWorkers() const {
  MutexLock lock(mu_);
  return static_cast<int>(shared_.workers.size());
}

uint64_t Core::sequence() const {
  MutexLock lock(mu_);
  return shared_.sequence;
}

// --- Requests ---------------------------------------------------------------------

static absl::Status StatusOf(const absl::Status& status) {
  return status;
}
template <class Answer>
static absl::Status StatusOf(const absl::StatusOr<Answer>& answer) {
  return answer.status();
}

template <class Result>
static void AnswerWhenDurable(Transaction& txn, Result result, std::function<void(Result)> done) {
  txn.AuditRefusal(StatusOf(result)).IgnoreError();
  txn.WhenDurable([done = std::move(done), result = std::move(result)](
                      const absl::Status& durable) { done(durable.ok() ? result : durable); });
}

void Core::RegisterDataset(const RegisterDatasetRequest& request, Done<RegisterDatasetAnswer> done,
                           const Caller& caller) {
  Transaction txn(*this, caller);
  AnswerWhenDurable(txn, datasets_.Register(txn, request), std::move(done));
}

void Core::GetDataset(const std::string& id, uint64_t edition,
                      Done<std::shared_ptr<const DatasetRecord>> done, const Caller& caller) {
  Transaction txn(*this, caller);
  AnswerWhenDurable(txn, datasets_.Find(txn, id, edition), std::move(done));
}

void Core::UnregisterDataset(const std::string& id, DoneEmpty done, const Caller& caller) {
  Transaction txn(*this, caller);
  AnswerWhenDurable(txn, datasets_.Unregister(txn, id), std::move(done));
}

void Core::GetOrCreateJob(const GetOrCreateJobRequest& request, Done<JobAnswer> done,
                          const Caller& caller) {
  GetOrCreateJobRequest asked = request;
  if (asked.terms.target_workers == TargetWorkers::kAuto && IsStatic(asked.terms.mode) &&
      options_.deployment_mode == DeploymentMode::kColocated) {
    asked.terms.target_workers = TargetWorkers::kLocal;
  }
  Transaction txn(*this, caller);
  AnswerWhenDurable(txn, jobs_.GetOrCreate(txn, asked, nullptr), std::move(done));
}

void Core::RestoreJob(const RestoreJobRequest& request, Done<JobAnswer> done,
                      const Caller& caller) {
  Transaction txn(*this, caller);
  AnswerWhenDurable(txn, jobs_.GetOrCreate(txn, request.job, &request.restoration),
                    std::move(done));
}

void Core::GetReading(const GetReadingRequest& request, Done<SavedRepetition> done,
                      const Caller& caller) {
  Transaction txn(*this, caller);
  AnswerWhenDurable(txn, jobs_.GetReading(txn, request), std::move(done));
}

void Core::CancelJob(const std::string& name_or_id, DoneEmpty done, const Caller& caller) {
  Transaction txn(*this, caller);
  AnswerWhenDurable(txn, jobs_.Cancel(txn, name_or_id), std::move(done));
}

void Core::RemoveJob(const std::string& name_or_id, DoneEmpty done, const Caller& caller) {
  Transaction txn(*this, caller);
  AnswerWhenDurable(txn, jobs_.Remove(txn, name_or_id), std::move(done));
}

// --- Streams ----------------------------------------------------------------------

template <class Peer>
static std::shared_ptr<Peer> Open(auto writer, Caller caller) {
  auto peer = std::make_shared<Peer>();
  peer->writer = std::move(writer);
  peer->caller = std::move(caller);
  return peer;
}

std::shared_ptr<ClientPeer> Core::OpenClient(std::shared_ptr<ClientStreamWriter> writer,
                                             Caller caller) {
  return ::penstock::control::Open<ClientPeer>(std::move(writer), std::move(caller));
}

std::shared_ptr<WorkerPeer> Core::OpenWorker(std::shared_ptr<WorkerStreamWriter> writer,
                                             Caller caller) {
  return ::penstock::control::Open<WorkerPeer>(std::move(writer), std::move(caller));
}

void Core::OnMessage(const std::shared_ptr<ClientPeer>& peer, ClientUp message) {
  const Arriving arriving(peer->arriving);
  if (auto* beat = std::get_if<ClientHeartbeat>(&message)) {
    return OnHeartbeat(peer, std::move(*beat));
  }
  Transaction txn(*this, peer->caller);
  sessions_.OnMessage(txn, peer, message);
}

// Takes the lock only for the marks of a consumer, and for an answer that waits for a new record.
// By then the lease is renewed.
void Core::OnHeartbeat(const std::shared_ptr<ClientPeer>& peer, ClientHeartbeat heartbeat) {
  HeartbeatSession& session = peer->heartbeats;
  const auto renewal = liveness_.OnHeartbeat(session, heartbeat.counter);
  if (!renewal.has_value()) return;
  const absl::Time now = options_.now();
  scaling_.OnClientSteps(session.job, session.key.second, session.incarnation, heartbeat.steps,
                         now);
  // The session may have ended on a newer stream since the renewal. This comes after the steps, and
  // ForgetLease() forgets the links first, so ClientLeft() comes last in either case.
  if (!links_.Heard(session.key, session.stream, heartbeat, now))
    scaling_.ClientLeft(session.job, session.key.second, now);
  if (!peer->at_quota.exchange(heartbeat.at_quota) && heartbeat.at_quota) {
    options_.events->Write(
        {"quota_reached", {{"job", session.job_name}, {"bound", "max_bytes_in_flight"}}});
  }
  if (session.consumer >= 0) {
    SessionManager::ConsumerNews news;
    {
      MutexLock lock(mu_);
      news = sessions_.OnConsumerBeat(*peer, heartbeat.marks);
    }
    if (news.back || news.torn_in) {
      Transaction txn(*this);
      txn.Guard([&]() REQUIRES(mu_) { sessions_.OnConsumerNews(txn, *peer, news); });
    }
  }
  CountHeartbeat();
  if (options_.leads && !options_.leads()) return;
  if (!renewal->due) return peer->writer->Send(ClientHeartbeatAnswer{renewal->counter}, 0);
  Transaction txn(*this);
  sessions_.AnswerHeartbeat(txn, *peer, heartbeat.counter);
}

void Core::OnMessage(const std::shared_ptr<WorkerPeer>& peer, WorkerUp message) {
  const Arriving arriving(peer->arriving);
  if (auto* beat = std::get_if<WorkerHeartbeat>(&message)) {
    WorkerHeartbeatAnswer answer;
    {
      MutexLock lock(mu_);
      if (!peer->worker) return;
      answer = workers_.OnHeartbeat(*peer, std::move(*beat));
    }
    CountHeartbeat();
    if (options_.leads && !options_.leads()) return;
    peer->writer->Send(answer, 0);
    return;
  }
  Transaction txn(*this, peer->caller);
  workers_.OnMessage(txn, peer, message);
}

void Core::OnClosed(const std::shared_ptr<ClientPeer>& peer) {
  Transaction txn(*this);
  sessions_.OnClosed(txn, peer);
}

void Core::OnClosed(const std::shared_ptr<WorkerPeer>& peer) {
  MutexLock lock(mu_);
  workers_.OnClosed(peer);
}

void Core::OnUnreadable(const std::shared_ptr<ClientPeer>& peer, const absl::Status& why) {
  Transaction txn(*this);
  sessions_.OnUnreadable(txn, peer, why);
}

void Core::OnUnreadable(const std::shared_ptr<WorkerPeer>& peer, const absl::Status& why) {
  Transaction txn(*this);
  workers_.OnUnreadable(txn, peer, why);
}

void Core::BeginToLeave() {
  MutexLock lock(mu_);
  sessions_.BeginToLeave();
}

// --- Time -------------------------------------------------------------------------

void Core::Sweep() {
  Transaction txn(*this);
  const absl::Time now = options_.now();
  if (liveness_.NoteSweep(txn, transactions_.ends, now)) links_.OnStall(now);
  txn.Guard([&]() REQUIRES(mu_) { consumers_.SuspectSilent(txn, now); });
  txn.Guard([&]() REQUIRES(mu_) {
    workers_.Expire(txn, now);
    sessions_.Expire(txn, now);
  });
  txn.Guard([&]() REQUIRES(mu_) { links_.MoveFromUnreached(txn, placer_, now); });
  txn.Guard([&]() REQUIRES(mu_) { placer_.EndReservations(txn); });
  txn.Guard([&]() REQUIRES(mu_) { placer_.RetryLimited(txn); });
  txn.Guard([&]() REQUIRES(mu_) { jobs_.RetireIterations(txn); });
  txn.Guard([&]() REQUIRES(mu_) { jobs_.Collect(txn, now); });
  datasets_.CollectUnused(txn, now);
  workers_.Estimate(txn, now);
}

// A worker whose stream broke and whose port refuses connections is dead. The dispatcher does not
// wait until the worker's lease expires.
void Core::ProbeBrokenWorkers() {
  std::vector<std::pair<WorkerId, std::string>> broken;
  {
    MutexLock lock(mu_);
    broken = workers_.TakeBroken();
  }
  for (const auto& [id, address] : broken) {
    if (!options_.port_refuses(address)) continue;
    Transaction txn(*this);
    txn.Guard([&, id = id]() REQUIRES(mu_) { workers_.OnPortRefused(txn, id); });
  }
}

}  // namespace penstock::control
