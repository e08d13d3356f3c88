// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/membership_sender.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "control/dispatcher/messages/peer_messages.h"
#include "control/dispatcher/transaction.h"

namespace penstock::control {
namespace {

// With this many new partitions, a change is not gathered any longer. A client drops the elements
// of a partition that is more than 1024 partitions beyond those it knows (ReceiveLedger).
constexpr size_t kMostOpened = 512;

// Returns what MembershipOf() needs to know the ends of the partitions.
const protocol::IterationContext* EndsOf(Transaction& txn, const State& state,
                                         const IterationState& iteration) {
  const bool needed = !iteration.record.closed && state.jobs.at(iteration.job).terms.deterministic;
  return needed ? &txn.GetContext(iteration.id) : nullptr;
}

// Returns whether the change may alter the number of readers, who share a quota of bytes.
bool AltersShares(const protocol::IterationChange& change) {
  return std::holds_alternative<protocol::ReaderJoined>(change) ||
         std::holds_alternative<protocol::ReaderReplaced>(change) ||
         std::holds_alternative<protocol::ReaderGone>(change) ||
         std::holds_alternative<protocol::ReaderEnded>(change);
}

}  // namespace

MembershipSender::View* MembershipSender::Find(IterationId iteration) {
  const auto found = views_.find(iteration);
  return found == views_.end() ? nullptr : &found->second;
}

void MembershipSender::NoteAltered(IterationId iteration, View& view) {
  view.altered = true;
  waiting_.insert(iteration);
}

void MembershipSender::OnChange(const IterationState& iteration,
                                const protocol::IterationChange& change) {
  View* const view = Find(iteration.id);
  if (view == nullptr) return;  // no session has been sent anything yet
  if (const auto* opened = std::get_if<protocol::PartitionOpened>(&change)) {
    view->partitions.insert(opened->partition);
    ++view->opened;
  } else if (const auto* raised = std::get_if<protocol::PlacementRaised>(&change)) {
    view->partitions.insert(raised->partition);
  } else if (const auto* assigned = std::get_if<protocol::PartitionAssigned>(&change)) {
    view->partitions.insert(assigned->partition);
  } else if (AltersShares(change)) {
    if (shared_.state.jobs.at(iteration.job).terms.quota.max_bytes_in_flight == 0) return;
  } else if (!std::holds_alternative<protocol::IterationClosed>(change) &&
             !std::holds_alternative<protocol::IterationReopened>(change)) {
    return;
  }
  NoteAltered(iteration.id, *view);
}

void MembershipSender::OnPartitionEnded(IterationId iteration, PartitionId partition) {
  View* const view = Find(iteration);
  if (view == nullptr) return;
  view->partitions.insert(partition);
  NoteAltered(iteration, *view);
}

void MembershipSender::OnWorkerAltered(WorkerId worker) {
  for (auto& [id, view] : views_) {
    const IterationState* iteration = shared_.state.FindIteration(id);
    if (iteration == nullptr) continue;
    const auto& partitions = iteration->record.partitions;
    if (std::none_of(partitions.begin(), partitions.end(),
                     [&](const auto& partition) { return partition.worker == worker; })) {
      continue;
    }
    view.workers.insert(worker);
    NoteAltered(id, view);
  }
}

void MembershipSender::Forget(IterationId iteration) {
  views_.erase(iteration);
  waiting_.erase(iteration);
}

void MembershipSender::Send(Transaction& txn) {
  for (const auto& peer : std::exchange(welcomed_, {})) SendWhole(txn, peer);
  if (waiting_.empty()) return;
  const absl::Time now = shared_.options.now();
  std::erase_if(waiting_, [&](IterationId id) { return SendChange(txn, id, now); });
}

void MembershipSender::SendWhole(Transaction& txn, const std::shared_ptr<ClientPeer>& peer) {
  const IterationState* iteration = shared_.state.FindIteration(peer->iteration);
  if (iteration == nullptr) return;  // the session has ended in this transaction
  View& view = views_[iteration->id];
  if (std::exchange(view.altered, false) || view.version == 0) view.version = ++version_;
  peer->membership = view.version;
  txn.Send(peer, MembershipOf(shared_.state, *iteration, EndsOf(txn, shared_.state, *iteration),
                              view.version));
}

bool MembershipSender::SendChange(Transaction& txn, IterationId id, absl::Time now) {
  View* const view = Find(id);
  const IterationState* iteration = shared_.state.FindIteration(id);
  if (view == nullptr || iteration == nullptr) return true;
  if (now < view->sent + kGatherTime && view->opened < kMostOpened) return false;
  if (std::exchange(view->altered, false)) view->version = ++version_;
  const Membership change =
      MembershipChangeOf(shared_.state, *iteration, EndsOf(txn, shared_.state, *iteration),
                         view->version, view->partitions, std::exchange(view->workers, {}));
  view->partitions.clear();
  view->opened = 0;
  bool any = false;
  std::map<uint64_t, std::shared_ptr<const ClientDown>> messages;  // by `since`
  for (const auto& peer : shared_.SessionsOf(id)) {
    if (peer->membership == 0) continue;  // it was not welcomed
    any = true;
    const uint64_t since = std::exchange(peer->membership, view->version);
    if (since == view->version) continue;
    std::shared_ptr<const ClientDown>& message = messages[since];
    if (message == nullptr) {
      Membership its = change;
      its.since = since;
      message = std::make_shared<const ClientDown>(std::move(its));
    }
    txn.SendShared(peer, message);
  }
  if (!messages.empty()) view->sent = now;
  if (!any) views_.erase(id);
  return true;
}

}  // namespace penstock::control
