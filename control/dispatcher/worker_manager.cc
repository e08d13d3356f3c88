// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/worker_manager.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/iteration_end.h"
#include "control/dispatcher/messages/peer_messages.h"
#include "control/dispatcher/messages/refusals.h"
#include "control/dispatcher/messages/texts.h"
#include "control/dispatcher/monitoring/counters.h"
#include "control/dispatcher/transaction.h"
#include "control/observe/refused.h"
#include "control/policy/authorization.h"
#include "control/policy/splits.h"
#include "control/policy/worker_list.h"
#include "control/state/format.h"
#include "include/status_macros.h"
#include "penstock/status.h"

namespace penstock::control {
namespace {

constexpr absl::Duration kBetweenEstimates = absl::Seconds(2);
constexpr size_t kMostChecks = 32;  // of ports, in one call

// The maximum number of permits that a worker may report. This is far larger than the number of
// cores of any machine. The number is limited because mode DYNAMIC opens a partition for each
// permit.
constexpr int32_t kMostPermits = 1 << 12;

std::string WorkerText(WorkerId worker) {
  return absl::StrCat(absl::Hex(worker.value()));
}

// Returns whether the partition may succeed on another worker, or in a later try.
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

// Returns whether `worker` currently has the partition under exactly the placement in `of`.
bool Holds(const IterationState& iteration, WorkerId worker, const PlacedPartition& of) {
  return iteration.record.Has(of.partition) && worker &&
         iteration.record.partition(of.partition).worker == worker &&
         iteration.record.partition(of.partition).placement == of.placement;
}

// Returns whether the message is about a partition that a dispatcher with another journal assigned.
// The worker sent such a message before it received the welcome.
bool IsOfAnotherJournal(const WorkerUp& message, uint64_t journal) {
  return std::visit(
      [&](const auto& its) {
        if constexpr (requires { its.of; }) return its.of.journal != journal;
        return false;
      },
      message);
}

}  // namespace

void WorkerManager::Begin() {
  for (const auto& [id, worker] : state_.workers) absent_.Add(id, options_.now());
}

WorkerHeartbeatAnswer WorkerManager::OnHeartbeat(WorkerPeer& peer, WorkerHeartbeat heartbeat) {
  const absl::Time now = options_.now();
  scaling_.OnWorkerHeartbeat(state_, peer.worker, heartbeat, now);
  peer.work = std::move(heartbeat.work);
  liveness_.Heard(peer.worker);
  const absl::Duration interval = liveness_.WorkerTimes().interval;
  return {heartbeat.counter, absl::Seconds(state_.placed.count()) / kBookmarksPerSecond,
          interval > options_.heartbeat_interval ? interval : absl::ZeroDuration()};
}

void WorkerManager::OnMessage(Transaction& txn, const std::shared_ptr<WorkerPeer>& peer,
                              const WorkerUp& message) {
  txn.Guard([&] { Handle(txn, peer, message); });
}

void WorkerManager::Handle(Transaction& txn, const std::shared_ptr<WorkerPeer>& peer,
                           const WorkerUp& message) {
  if (const auto* hello = std::get_if<WorkerHello>(&message)) return OnHello(txn, peer, *hello);
  if (!peer->worker || IsOfAnotherJournal(message, state_.lives.back().life.journal)) return;
  liveness_.Heard(peer->worker);
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
    Lose(txn, peer->worker, "it left", /*died=*/false);
  }
}

void WorkerManager::OnClosed(const std::shared_ptr<WorkerPeer>& peer) {
  auto found = workers_.find(peer->worker);
  if (found != workers_.end() && found->second == peer) {
    workers_.erase(found);
    absent_.Add(peer->worker, options_.now());
  }
  peer->worker = WorkerId();
}

void WorkerManager::OnUnreadable(Transaction& txn, const std::shared_ptr<WorkerPeer>& peer,
                                 const absl::Status& why) {
  txn.Log("unreadable",
          {{"worker", WorkerText(peer->worker)}, {"why", std::string(why.message())}});
  txn.WhenDurable([writer = peer->writer, why](const absl::Status&) {
    writer->Finish(absl::AbortedError(
        absl::StrCat("the dispatcher cannot read a message from this worker: ", why.message())));
  });
}

absl::StatusOr<int64_t> WorkerManager::PlaceOf(const WorkerHello& hello) const {
  const std::vector<std::string>& list = options_.worker_addresses;
  if (list.empty()) return -1;
  std::set<int64_t> taken;  // by connected workers; a new worker may take any other place
  for (const auto& [id, peer] : workers_) {
    const WorkerRecord* worker = state_.FindWorker(id);
    if (worker != nullptr && id != hello.worker) taken.insert(worker->place);
  }
  // A worker that returns keeps its place, and therefore its shards, if no other worker has taken
  // the place and the list still contains the worker's address.
  if (const WorkerRecord* known = state_.FindWorker(hello.worker);
      known != nullptr && !taken.contains(known->place)) {
    std::set<int64_t> others;
    for (int64_t place = 0; place < static_cast<int64_t>(list.size()); ++place)
      if (place != known->place) others.insert(place);
    if (auto same = PlaceInList(list, hello.address, others); same.ok()) return same;
  }
  return PlaceInList(list, hello.address, taken);
}

absl::StatusOr<int64_t> WorkerManager::CheckHello(Transaction& txn, const WorkerHello& hello) {
  RETURN_IF_ERROR(CheckTexts(hello));
  const std::string who = absl::StrCat("the worker at ", hello.address);
  RETURN_IF_ERROR(AuthorizeByRole(Action::kServe, txn.caller()));
  RETURN_IF_ERROR(AgreeOnVersion(hello.version, who).status());
  if (hello.permits > kMostPermits) {
    CountRefused(Port::kDispatcher, Refused::kTooMany);
    return absl::InvalidArgumentError(absl::StrCat(who, " has ", hello.permits,
                                                   " permits; the limit is ", kMostPermits,
                                                   ". Start it with one permit for each core"));
  }
  if (OriginOf(hello.heard, state_.lives) == Origin::kBeyond) {
    lives_.EndEarlier(txn, hello.heard);
    return Annotate(lives_.Beyond(hello.heard), "the hello of ", who);
  }
  RETURN_IF_ERROR(CheckTakeover(txn, hello));
  return PlaceOf(hello);
}

absl::Status WorkerManager::CheckTakeover(Transaction& txn, const WorkerHello& hello) const {
  const std::string owner = state_.OwnerOf(hello.worker);
  if (!owner.empty() && txn.caller().has_value() && owner != txn.caller()->name) {
    return absl::PermissionDeniedError(absl::StrCat(
        "worker id ", WorkerText(hello.worker), " belongs to principal ", owner, "; principal ",
        txn.caller()->name, " may not use it: restart the worker, which draws another id"));
  }
  if (workers_.contains(hello.worker)) {
    txn.Audit("worker_reconnected",
              {{"worker", WorkerText(hello.worker)}, {"address", hello.address}});
  }
  return absl::OkStatus();
}

std::string WorkerManager::OwnerFor(const WorkerHello& hello, const Caller& caller) const {
  std::string owner = state_.OwnerOf(hello.worker);
  return owner.empty() && caller.has_value() ? caller->name : owner;
}

void WorkerManager::OnHello(Transaction& txn, const std::shared_ptr<WorkerPeer>& peer,
                            const WorkerHello& hello) {
  if (peer->worker) {
    absent_.Add(peer->worker, options_.now());
    return txn.Close(peer,
                     absl::InvalidArgumentError(absl::StrCat(
                         "worker ", WorkerText(peer->worker),
                         " sent a second hello on its stream; open one stream for each worker")));
  }
  const absl::StatusOr<int64_t> place = CheckHello(txn, hello);
  if (!place.ok()) {
    txn.Audit("worker_refused",
              {{"address", hello.address}, {"why", std::string(place.status().message())}});
    return txn.Close(peer, place.status());
  }
  if (auto before = workers_.find(hello.worker); before != workers_.end()) {
    const std::shared_ptr<WorkerPeer> old = before->second;
    old->worker = WorkerId();
    txn.WhenDurable([writer = old->writer](const absl::Status&) {
      writer->Finish(absl::AbortedError("the worker has a newer stream"));
    });
  }
  peer->worker = hello.worker;
  peer->version = *AgreeOnVersion(hello.version, "the worker");  // CheckHello() has checked it
  peer->release = hello.release;
  peer->reads = hello.reads;
  workers_.Put(hello.worker, peer);
  absent_.Remove(hello.worker);
  liveness_.Joined(hello.worker);

  const WorkerRecord* known = state_.FindWorker(hello.worker);
  WorkerRecord record{.id = hello.worker,
                      .address = hello.address,
                      .offers = hello.offers,
                      .tags = hello.tags,
                      .permits = std::max(hello.permits, 1),
                      .draining = known != nullptr && known->draining,
                      .place = *place,
                      .process = hello.process,
                      .owner = OwnerFor(hello, txn.caller())};
  if (known == nullptr) {
    txn.Audit("joined", {{"worker", WorkerText(hello.worker)},
                         {"address", hello.address},
                         {"permits", absl::StrCat(record.permits)}});
  }
  if (known != nullptr && DescriptionOf(*known) != DescriptionOf(record))
    txn.membership().OnWorkerAltered(hello.worker);
  if (known == nullptr || !(*known == record)) txn.Apply(WorkerRegistered{std::move(record)});
  txn.Send(peer,
           WorkerWelcome{state_.lives.back().life, options_.heartbeat_interval, peer->version});

  // Tells the worker to drop placements in iterations that no longer exist. The protocol handles
  // the worker's other placements. When the worker gets the welcome, it drops the placements of a
  // different journal by itself.
  std::map<IterationId, std::vector<protocol::HeldPlacement>> held;
  for (const PlacedPartition& of : hello.held) {
    if (of.journal != state_.lives.back().life.journal) continue;
    const IterationState* iteration = state_.FindIteration(of.iteration);
    if (iteration == nullptr || !state_.GoesOn(*iteration)) {
      txn.Send(peer, Unassign{of});
    } else {
      held[of.iteration].push_back({of.partition, of.placement});
    }
  }
  for (const auto& [id, iteration] : state_.iterations) {
    if (!state_.GoesOn(iteration) || iteration.record.finished) continue;
    txn.Guard([&, id = id, &iteration = iteration] {
      protocol::IterationContext& context = txn.GetContext(id);
      txn.Settle(id, protocol::OnWorkerRegisters(iteration.record, context, hello.worker,
                                                 state_.placed.On(hello.worker, id), held[id]));
      if (!iteration.record.closed) placer_.Balance(txn, id);
    });
  }
}

void WorkerManager::OnSplitRequest(Transaction& txn, const WorkerPeer& peer,
                                   const SplitRequest& request) {
  const IterationState* iteration = state_.FindIteration(request.of.iteration);
  if (iteration == nullptr || !state_.GoesOn(*iteration) ||
      !Holds(*iteration, peer.worker, request.of)) {
    return;  // the request is for an older placement; a message to the worker says so
  }
  absl::StatusOr<SplitDecision> decision =
      DecideSplits(state_.jobs.at(iteration->job), *iteration, request);
  if (!decision.ok()) {
    return OnFailed(txn, peer, {request.of, Annotate(decision.status(), "a request for splits")});
  }
  if (decision->given.has_value()) txn.Apply(*std::move(decision->given));
  txn.Send(peer.worker, Splits{request.of, std::move(decision->answer)});
}

void WorkerManager::OnBookmark(Transaction& txn, const WorkerPeer& peer, const Bookmark& bookmark) {
  const IterationState* iteration = state_.FindIteration(bookmark.of.iteration);
  if (iteration == nullptr || !state_.GoesOn(*iteration)) return;
  // Without its versions, a worker that cannot read the bookmark would be given it.
  if (!bookmark.versions.empty() && state_.format < kBookmarkVersionsFormat) return;
  protocol::Decision decision = protocol::OnBookmark(
      iteration->record, txn.GetContext(iteration->id), peer.worker, bookmark.of.partition,
      bookmark.of.placement, {bookmark.index, bookmark.position});
  // A new bookmark is progress, so earlier failures of the partition no longer count.
  if (!decision.changes.empty()) placer_.ForgetFailures({iteration->id, bookmark.of.partition});
  const MarkedBookmark marks{bookmark.index, bookmark.splits, bookmark.versions};
  txn.Settle(iteration->id, std::move(decision), &marks);
}

void WorkerManager::OnEnded(Transaction& txn, const WorkerPeer& peer, const Ended& ended) {
  const IterationState* iteration = state_.FindIteration(ended.of.iteration);
  if (iteration == nullptr || !state_.GoesOn(*iteration) ||
      !Holds(*iteration, peer.worker, ended.of)) {
    return;
  }
  protocol::IterationContext& context = txn.GetContext(iteration->id);
  const bool first = context.num_ended == 0;
  protocol::Decision decision =
      protocol::OnEnded(iteration->record, context, peer.worker, ended.of.partition,
                        ended.of.placement, ended.elements);
  placer_.NoteEnded({iteration->id, ended.of.partition}, peer.worker);
  if (first) txn.SendToSessions(iteration->id, ReportAtOnce{});
  txn.Settle(iteration->id, std::move(decision));
  if (state_.jobs.at(iteration->job).terms.deterministic)
    txn.membership().OnPartitionEnded(iteration->id, ended.of.partition);
  placer_.Balance(txn, iteration->id);
}

void WorkerManager::OnAtEnd(Transaction& txn, const WorkerPeer& peer, const AtEnd& at_end) {
  const IterationState* iteration = state_.FindIteration(at_end.of.iteration);
  if (iteration == nullptr || !state_.GoesOn(*iteration)) return;
  txn.Settle(iteration->id,
             protocol::OnAtEnd(iteration->record, txn.GetContext(iteration->id), peer.worker,
                               at_end.of.partition, at_end.of.placement, at_end.elements));
}

void WorkerManager::OnFailed(Transaction& txn, const WorkerPeer& peer,
                             const PartitionFailed& failed) {
  const IterationState* iteration = state_.FindIteration(failed.of.iteration);
  if (iteration == nullptr || !state_.GoesOn(*iteration) ||
      !Holds(*iteration, peer.worker, failed.of)) {
    return;
  }
  const WorkerRecord* worker = state_.FindWorker(peer.worker);
  const absl::Status reason =
      Annotate(failed.status, "partition ", failed.of.partition.value(), " on worker ",
               worker == nullptr ? WorkerText(peer.worker) : worker->address);
  txn.Log("partition_failed", {{"iteration", absl::StrCat(iteration->id.value())},
                               {"partition", absl::StrCat(failed.of.partition.value())},
                               {"why", std::string(reason.message())}});
  if (failed.refuses_dataset) return OnDatasetRefused(txn, peer.worker, *iteration, failed.status);
  placer_.NoteFailure({failed.of.iteration, failed.of.partition}, peer.worker);
  if (MayHelpElsewhere(failed.status) &&
      placer_.SomebodyMayRun(*iteration, txn.GetContext(iteration->id), failed.of.partition)) {
    txn.Settle(iteration->id, protocol::OnRelieve(iteration->record, txn.GetContext(iteration->id),
                                                  failed.of.partition));
    return;
  }
  txn.EndOf(*iteration).Fail(reason);
}

void WorkerManager::OnDatasetRefused(Transaction& txn, WorkerId worker,
                                     const IterationState& iteration, const absl::Status& reason) {
  const DatasetRecord& dataset = *state_.jobs.at(iteration.job).dataset;
  txn.Log("dataset_refused", {{"worker", WorkerText(worker)},
                              {"dataset", dataset.id},
                              {"why", std::string(reason.message())}});
  refusals_.Note(worker, dataset, std::string(reason.message()));
  for (const auto& [id, other] : state_.iterations) {
    if (!state_.GoesOn(other) || other.record.closed ||
        refusals_.Find(worker, *state_.jobs.at(other.job).dataset) == nullptr) {
      continue;
    }
    txn.Guard([&, &its = other] { placer_.RelieveAllOn(txn, its, worker, PartitionKey()); });
  }
}

void WorkerManager::OnDrain(Transaction& txn, const WorkerPeer& peer) {
  const WorkerId worker = peer.worker;
  txn.Log("draining", {{"worker", WorkerText(worker)}});
  if (!state_.FindWorker(worker)->draining) txn.Apply(WorkerDraining{worker});
  placer_.EndReservation(worker);
  for (const auto& [id, iteration] : state_.iterations) {
    if (!state_.GoesOn(iteration) || iteration.record.closed) continue;
    txn.Guard([&, id = id, &iteration = iteration] {
      txn.Settle(id, protocol::OnWorkerGone(iteration.record, txn.GetContext(id),
                                            state_.placed.On(worker, id)));
    });
  }
  txn.Send(worker, Drained{});
}

void WorkerManager::Lose(Transaction& txn, WorkerId worker, const std::string& reason, bool died) {
  txn.Log("lost", {{"worker", WorkerText(worker)},
                   {"address", state_.FindWorker(worker)->address},
                   {"partitions", absl::StrCat(state_.PartitionsOn(worker))},
                   {"why", reason}});
  liveness_.Forget(worker);
  absent_.Remove(worker);
  refusals_.Forget(worker);
  scaling_.WorkerGone(worker);
  if (auto peer = workers_.find(worker); peer != workers_.end()) {
    const std::shared_ptr<WorkerPeer> old = peer->second;
    workers_.erase(peer);
    old->worker = WorkerId();
    // If the worker is alive, it says hello again, and the dispatcher tells it which placements it
    // has lost.
    txn.WhenDurable([writer = old->writer, reason](const absl::Status&) {
      writer->Finish(absl::AbortedError(absl::StrCat("the worker was removed: ", reason)));
    });
  }
  if (died) {
    placer_.NoteDeath(txn, worker);
  } else {
    placer_.EndReservation(worker);
  }
  txn.Apply(WorkerGone{worker});
  for (const auto& [id, iteration] : state_.iterations) {
    if (!state_.GoesOn(iteration) || iteration.record.finished) continue;
    txn.Guard([&, id = id, &iteration = iteration] {
      txn.Settle(id, protocol::OnWorkerGone(iteration.record, txn.GetContext(id),
                                            state_.placed.On(worker, id)));
    });
  }
}

void WorkerManager::Expire(Transaction& txn, absl::Time now) {
  for (WorkerId worker : liveness_.ExpiredWorkers(now)) {
    if (liveness_.IsSpared(worker, now)) continue;
    if (state_.FindWorker(worker) == nullptr) {
      liveness_.Forget(worker);
    } else {
      const absl::Duration silent = absl::Trunc(liveness_.SilenceOf(worker, now), absl::Seconds(1));
      Lose(txn, worker,
           absl::StrCat("silent for ",
                        absl::FormatDuration(std::max(silent, liveness_.WorkerTimes().timeout))));
    }
  }
}

std::vector<std::pair<WorkerId, std::string>> WorkerManager::TakeBroken() {
  std::vector<std::pair<WorkerId, std::string>> broken;
  for (const WorkerId id : absent_.TakeDue(options_.now(), kMostChecks)) {
    if (const WorkerRecord* worker = state_.FindWorker(id)) broken.push_back({id, worker->address});
  }
  return broken;
}

void WorkerManager::OnPortRefused(Transaction& txn, WorkerId worker) {
  if (workers_.count(worker) > 0 || state_.FindWorker(worker) == nullptr) return;
  Lose(txn, worker, "its stream broke and its port refuses connections");
}

void WorkerManager::Estimate(Transaction& txn, absl::Time now) {
  if (now < estimated_ + kBetweenEstimates) return;
  estimated_ = now;
  const int64_t before = scaling_.latest().workers;
  const Scaling::Estimate& estimate =
      scaling_.Decide(state_, static_cast<int64_t>(workers_.size()), now);
  SetWantedWorkers(estimate.workers);
  if (!estimate.changed) return;
  txn.Log("wanted_workers", {{"workers", absl::StrCat(estimate.workers)},
                             {"before", absl::StrCat(before)},
                             {"there", absl::StrCat(workers_.size())},
                             {"why", estimate.why}});
}

}  // namespace penstock::control
