// SPDX-License-Identifier: Apache-2.0
// Workers: which ones work, on what, and the messages that they send.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/counters.h"
#include "control/dispatcher/refusals.h"
#include "control/dispatcher/transaction.h"
#include "control/policy/placing.h"
#include "control/policy/splits.h"
#include "control/sync/mutex.h"
#include "penstock/status.h"

namespace penstock::control {
namespace {

// A partition is tried at least this often, even if there are fewer workers.
constexpr int kTries = 3;

// Far more than a machine has cores. Mode DYNAMIC opens a partition for each permit.
constexpr int32_t kMostPermits = 1 << 12;

std::string WorkerText(WorkerId worker) {
  return absl::StrCat(absl::Hex(worker.value()));
}

// Returns whether another worker, or a later try, may succeed.
bool MayHelpElsewhere(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kFailedPrecondition:  // other files, other plug-ins
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kPermissionDenied:  // other mounts, other credentials
    case absl::StatusCode::kUnauthenticated:
      return true;
    default:
      return false;
  }
}

// Returns whether `worker` holds exactly that placement.
bool Holds(const IterationState& iteration, WorkerId worker, const PlacedPartition& of) {
  return iteration.record.Has(of.partition) && worker &&
         iteration.record.partition(of.partition).worker == worker &&
         iteration.record.partition(of.partition).placement == of.placement;
}

// Returns whether the message is about a partition that another journal assigned: the worker sent
// it before it received the welcome.
bool IsOfAnotherJournal(const WorkerUp& message, uint64_t journal) {
  return std::visit(
      [&](const auto& its) {
        if constexpr (requires { its.of; }) return its.of.journal != journal;
        return false;
      },
      message);
}

}  // namespace

std::shared_ptr<WorkerPeer> Core::OpenWorker(std::shared_ptr<WorkerStreamWriter> writer) {
  auto peer = std::make_shared<WorkerPeer>();
  peer->writer = std::move(writer);
  return peer;
}

void Core::OnMessage(const std::shared_ptr<WorkerPeer>& peer, WorkerUp message) {
  const Arriving arriving(peer->arriving);
  if (auto* beat = std::get_if<WorkerHeartbeat>(&message)) {
    {
      MutexLock lock(mu_);
      if (!peer->worker) return;
      const absl::Time now = options_.now();
      scaling_.OnWorkerHeartbeat(state_, peer->worker, *beat, now);
      peer->work = std::move(beat->work);
      worker_leases_.Heard(peer->worker, now);
    }
    CountHeartbeat();
    peer->writer->Send(WorkerHeartbeatAnswer{beat->counter}, 0);
    return;
  }
  Transaction txn(*this);
  txn.Guard([&]() REQUIRES(mu_) { Handle(txn, peer, message); });
}

void Core::Handle(Transaction& txn, const std::shared_ptr<WorkerPeer>& peer,
                  const WorkerUp& message) {
  if (const auto* hello = std::get_if<WorkerHello>(&message)) return OnHello(txn, peer, *hello);
  if (!peer->worker || IsOfAnotherJournal(message, state_.lives.back().life.journal)) return;
  worker_leases_.Heard(peer->worker, options_.now());
  if (const auto* request = std::get_if<SplitRequest>(&message)) {
    OnSplitRequest(txn, *peer, *request);
  } else if (const auto* bookmark = std::get_if<Bookmark>(&message)) {
    OnBookmark(txn, *peer, *bookmark);
  } else if (const auto* ended = std::get_if<Ended>(&message)) {
    OnEnded(txn, *peer, *ended);
  } else if (const auto* at_end = std::get_if<AtEnd>(&message)) {
    OnAtEnd(txn, *peer, *at_end);
  } else if (const auto* failed = std::get_if<PartitionFailed>(&message)) {
    OnFailed(txn, *peer, *failed);
  } else if (std::holds_alternative<Drain>(message)) {
    OnDrain(txn, *peer);
  } else if (std::holds_alternative<WorkerLeave>(message)) {
    LoseWorker(txn, peer->worker, "it left", /*died=*/false);
  }
}

void Core::OnClosed(const std::shared_ptr<WorkerPeer>& peer) {
  MutexLock lock(mu_);
  auto found = workers_.find(peer->worker);
  if (found != workers_.end() && found->second == peer) workers_.erase(found);
  peer->worker = WorkerId();
}

void Core::OnUnreadable(const std::shared_ptr<WorkerPeer>& peer, const absl::Status& why) {
  Transaction txn(*this);
  txn.Log("unreadable",
          {{"worker", WorkerText(peer->worker)}, {"why", std::string(why.message())}});
  txn.WhenDurable([writer = peer->writer, why](const absl::Status&) {
    writer->Finish(absl::AbortedError(
        absl::StrCat("the dispatcher cannot read a message of this worker: ", why.message())));
  });
}

void Core::OnHello(Transaction& txn, const std::shared_ptr<WorkerPeer>& peer,
                   const WorkerHello& hello) {
  if (peer->worker) {
    return txn.Close(peer, absl::InvalidArgumentError(absl::StrCat(
                               "a second hello on the stream of worker ", WorkerText(peer->worker),
                               "; open one for each worker")));
  }
  const std::string who = absl::StrCat("the worker at ", hello.address);
  if (absl::Status supported = CheckVersion(hello.version, who); !supported.ok()) {
    return txn.Close(peer, supported);
  }
  if (hello.permits > kMostPermits) {
    return txn.Close(peer, absl::InvalidArgumentError(absl::StrCat(
                               who, " has ", hello.permits, " permits; the most is ", kMostPermits,
                               ". Start it with as many as it has cores")));
  }
  if (OriginOf(hello.heard, state_.lives) == Origin::kBeyond) {
    EndEarlierLives(txn, hello.heard);
    return txn.Close(peer, Annotate(Beyond(hello.heard), "by ", who));
  }
  absl::StatusOr<int64_t> place = PlaceOf(hello);
  if (!place.ok()) return txn.Close(peer, place.status());
  if (auto before = workers_.find(hello.worker); before != workers_.end()) {
    const std::shared_ptr<WorkerPeer> old = before->second;
    old->worker = WorkerId();
    txn.WhenDurable([writer = old->writer](const absl::Status&) {
      writer->Finish(absl::AbortedError("the worker has a newer stream"));
    });
  }
  peer->worker = hello.worker;
  workers_[hello.worker] = peer;
  worker_leases_.Heard(hello.worker, options_.now());
  NoteHello(workers_to_come_.erase(hello.worker) > 0, options_.now());

  const WorkerRecord* known = state_.FindWorker(hello.worker);
  WorkerRecord record{.id = hello.worker,
                      .address = hello.address,
                      .offers = hello.offers,
                      .tags = hello.tags,
                      .permits = std::max(hello.permits, 1),
                      .draining = known != nullptr && known->draining,
                      .place = *place,
                      .process = hello.process};
  if (known == nullptr) {
    txn.Log("joined", {{"worker", WorkerText(hello.worker)},
                       {"address", hello.address},
                       {"permits", absl::StrCat(record.permits)}});
  }
  const bool differs = known != nullptr && !(*known == record);  // readers may need to know
  if (known == nullptr || differs) txn.Apply(WorkerRegistered{std::move(record)});
  txn.Send(peer, WorkerWelcome{state_.lives.back().life, options_.heartbeat_interval});

  // Placements that the worker holds in iterations that are gone are unassigned here; the protocol
  // handles the rest. The worker drops the placements of another journal when it gets the welcome.
  std::map<IterationId, std::vector<protocol::HeldPlacement>> held;
  for (const PlacedPartition& of : hello.held) {
    if (of.journal != state_.lives.back().life.journal) continue;
    const IterationState* iteration = state_.FindIteration(of.iteration);
    if (iteration == nullptr || !GoesOn(*iteration)) {
      txn.Send(peer, Unassign{of});
    } else {
      held[of.iteration].push_back({of.partition, of.placement});
    }
  }
  for (const auto& [id, iteration] : state_.iterations) {
    if (!GoesOn(iteration) || iteration.record.finished) continue;
    txn.Guard([&, id = id, &iteration = iteration]() REQUIRES(mu_) {
      protocol::IterationContext& context = txn.GetContext(id);
      txn.Settle(id,
                 protocol::OnWorkerRegisters(iteration.record, context, hello.worker, held[id]));
      if (iteration.record.closed) return;
      if (differs) txn.NotifyMembership(id);
      txn.Balance(id);
    });
  }
}

void Core::OnSplitRequest(Transaction& txn, const WorkerPeer& peer, const SplitRequest& request) {
  const IterationState* iteration = state_.FindIteration(request.of.iteration);
  if (iteration == nullptr || !GoesOn(*iteration) || !Holds(*iteration, peer.worker, request.of)) {
    return;  // of an older placement: the worker is being notified
  }
  absl::StatusOr<SplitDecision> decision =
      DecideSplits(state_.jobs.at(iteration->job), *iteration, request);
  if (!decision.ok()) {
    return OnFailed(txn, peer, {request.of, Annotate(decision.status(), "a request for splits")});
  }
  if (decision->given.has_value()) txn.Apply(*std::move(decision->given));
  txn.Send(peer.worker, Splits{request.of, std::move(decision->answer)});
}

void Core::OnBookmark(Transaction& txn, const WorkerPeer& peer, const Bookmark& bookmark) {
  const IterationState* iteration = state_.FindIteration(bookmark.of.iteration);
  if (iteration == nullptr || !GoesOn(*iteration)) return;
  protocol::Decision decision = protocol::OnBookmark(
      iteration->record, txn.GetContext(iteration->id), peer.worker, bookmark.of.partition,
      bookmark.of.placement, {bookmark.index, bookmark.position});
  // A new bookmark: the partition got past the point where it failed, or it did not fail there.
  if (!decision.changes.empty()) failures_.erase({iteration->id, bookmark.of.partition});
  txn.Settle(iteration->id, std::move(decision), MarkedBookmark{bookmark.index, bookmark.splits});
}

void Core::OnEnded(Transaction& txn, const WorkerPeer& peer, const Ended& ended) {
  const IterationState* iteration = state_.FindIteration(ended.of.iteration);
  if (iteration == nullptr || !GoesOn(*iteration)) return;
  protocol::IterationContext& context = txn.GetContext(iteration->id);
  const bool first = std::none_of(context.partitions.begin(), context.partitions.end(),
                                  [](const auto& partition) { return partition.ended; });
  protocol::Decision decision =
      protocol::OnEnded(iteration->record, context, peer.worker, ended.of.partition,
                        ended.of.placement, ended.elements);
  if (first && Holds(*iteration, peer.worker, ended.of)) {
    txn.SendToSessions(iteration->id, ReportAtOnce{});
  }
  txn.Settle(iteration->id, std::move(decision));
  if (state_.jobs.at(iteration->job).terms.deterministic) txn.NotifyMembership(iteration->id);
  txn.Balance(iteration->id);
}

void Core::OnAtEnd(Transaction& txn, const WorkerPeer& peer, const AtEnd& at_end) {
  const IterationState* iteration = state_.FindIteration(at_end.of.iteration);
  if (iteration == nullptr || !GoesOn(*iteration)) return;
  txn.Settle(iteration->id,
             protocol::OnAtEnd(iteration->record, txn.GetContext(iteration->id), peer.worker,
                               at_end.of.partition, at_end.of.placement, at_end.elements));
}

void Core::OnFailed(Transaction& txn, const WorkerPeer& peer, const PartitionFailed& failed) {
  const IterationState* iteration = state_.FindIteration(failed.of.iteration);
  if (iteration == nullptr || !GoesOn(*iteration) || !Holds(*iteration, peer.worker, failed.of)) {
    return;
  }
  const WorkerRecord* worker = state_.FindWorker(peer.worker);
  const absl::Status reason =
      Annotate(failed.status, "partition ", failed.of.partition.value(), " on worker ",
               worker == nullptr ? WorkerText(peer.worker) : worker->address);
  txn.Log("partition_failed", {{"iteration", absl::StrCat(iteration->id.value())},
                               {"partition", absl::StrCat(failed.of.partition.value())},
                               {"why", std::string(reason.message())}});
  Failures& failures = failures_[{failed.of.iteration, failed.of.partition}];
  ++failures.count;
  failures.deaths = failures.deaths_alone = 0;  // it reports an error, and ends no worker
  if (std::find(failures.on.begin(), failures.on.end(), peer.worker) == failures.on.end()) {
    failures.on.push_back(peer.worker);
  }
  if (MayHelpElsewhere(failed.status) &&
      SomebodyMayRun(*iteration, txn.GetContext(iteration->id), failed.of.partition, failures)) {
    txn.Settle(iteration->id, protocol::OnRelieve(iteration->record, txn.GetContext(iteration->id),
                                                  failed.of.partition));
    return;
  }
  FailIteration(txn, *iteration, reason);
}

void Core::FailIteration(Transaction& txn, const IterationState& iteration,
                         const absl::Status& reason) {
  TakeFromWorkers(txn, iteration);
  txn.Apply(IterationFailed{iteration.id, reason});
  CloseSessions(txn, iteration.id, reason);
}

bool Core::SomebodyMayRun(const IterationState& iteration,
                          const protocol::IterationContext& context, PartitionId partition,
                          const Failures& failures) const {
  if (failures.count < kTries) return true;
  const WorkerId next = ChooseWorker(state_, iteration, PartitionCounts(state_, iteration, context),
                                     partition, UsableWorkers(iteration), failures.on);
  return std::find(failures.on.begin(), failures.on.end(), next) == failures.on.end();
}

void Core::OnDrain(Transaction& txn, const WorkerPeer& peer) {
  const WorkerId worker = peer.worker;
  txn.Log("draining", {{"worker", WorkerText(worker)}});
  if (!state_.FindWorker(worker)->draining) txn.Apply(WorkerDraining{worker});
  alone_.erase(worker);
  for (const auto& [id, iteration] : state_.iterations) {
    if (!GoesOn(iteration) || iteration.record.closed) continue;
    txn.Guard([&, id = id, &iteration = iteration]() REQUIRES(mu_) {
      txn.Settle(id, protocol::OnWorkerGone(iteration.record, txn.GetContext(id), worker));
    });
  }
  txn.Send(worker, Drained{});
}

void Core::LoseWorker(Transaction& txn, WorkerId worker, const std::string& reason, bool died) {
  txn.Log("lost", {{"worker", WorkerText(worker)},
                   {"address", state_.FindWorker(worker)->address},
                   {"partitions", absl::StrCat(state_.PartitionsOn(worker))},
                   {"why", reason}});
  worker_leases_.Forget(worker);
  workers_to_come_.erase(worker);
  scaling_.WorkerGone(worker);
  if (auto peer = workers_.find(worker); peer != workers_.end()) {
    const std::shared_ptr<WorkerPeer> old = peer->second;
    workers_.erase(peer);
    old->worker = WorkerId();
    // If the worker is alive, it says hello again and is notified of what it lost.
    txn.WhenDurable([writer = old->writer, reason](const absl::Status&) {
      writer->Finish(absl::AbortedError(absl::StrCat("the worker was declared dead: ", reason)));
    });
  }
  if (died) {
    NoteDeath(txn, worker);
  } else {
    alone_.erase(worker);
  }
  txn.Apply(WorkerGone{worker});
  for (const auto& [id, iteration] : state_.iterations) {
    if (!GoesOn(iteration) || iteration.record.finished) continue;
    txn.Guard([&, id = id, &iteration = iteration]() REQUIRES(mu_) {
      txn.Settle(id, protocol::OnWorkerGone(iteration.record, txn.GetContext(id), worker));
    });
  }
}

}  // namespace penstock::control
