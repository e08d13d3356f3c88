// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/membership_sender.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "control/dispatcher/messages/peer_messages.h"
#include "control/dispatcher/transaction.h"
#include "control/protocol/each_position.h"

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

void MembershipSender::Add(View& view, PartitionId partition,
                           const std::optional<IndexSet>& readers) {
  const auto [known, is_new] = view.partitions.try_emplace(partition, readers);
  if (is_new || !known->second.has_value()) return;
  if (readers.has_value()) {
    known->second->Add(*readers);
  } else {
    known->second.reset();
  }
}

void MembershipSender::OnChange(const IterationState& iteration,
                                const protocol::IterationChange& change) {
  View* const view = Find(iteration.id);
  if (view == nullptr) return;  // no session has been sent anything yet
  if (const auto* opened = std::get_if<protocol::PartitionOpened>(&change)) {
    Add(*view, opened->partition, IndexSet());
    ++view->opened;
    view->concerns_all = true;
  } else if (const auto* raised = std::get_if<protocol::PlacementRaised>(&change)) {
    Add(*view, raised->partition, iteration.record.partition(raised->partition).audience);
  } else if (const auto* assigned = std::get_if<protocol::PartitionAssigned>(&change)) {
    Add(*view, assigned->partition, assigned->audience);
  } else if (const auto* extended = std::get_if<protocol::AudienceExtended>(&change)) {
    Add(*view, extended->partition, extended->added);
  } else if (AltersShares(change)) {
    if (shared_.state.jobs.at(iteration.job).terms.quota.max_bytes_in_flight == 0) return;
    view->concerns_all = true;
  } else if (std::holds_alternative<protocol::IterationClosed>(change) ||
             std::holds_alternative<protocol::IterationReopened>(change)) {
    view->concerns_all = true;
  } else {
    return;
  }
  NoteAltered(iteration.id, *view);
}

void MembershipSender::OnPartitionEnded(IterationId iteration, PartitionId partition) {
  View* const view = Find(iteration);
  if (view == nullptr) return;
  Add(*view, partition, std::nullopt);
  NoteAltered(iteration, *view);
}

void MembershipSender::OnWorkerAltered(WorkerId worker) {
  for (const IterationId id : shared_.state.placed.IterationsOn(worker)) {
    View* const view = Find(id);
    if (view == nullptr) continue;
    const protocol::IterationRecord& record = shared_.state.iterations.at(id).record;
    for (const PartitionId partition : shared_.state.placed.On(worker, id))
      Add(*view, partition, record.partition(partition).audience);
    NoteAltered(id, *view);
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
                              view.version, iteration->record.FindReader(peer->client)));
}

bool MembershipSender::SendChange(Transaction& txn, IterationId id, absl::Time now) {
  View* const view = Find(id);
  const IterationState* iteration = shared_.state.FindIteration(id);
  if (view == nullptr || iteration == nullptr) return true;
  if (now < view->sent + kGatherTime && view->opened < kMostOpened) return false;
  if (std::exchange(view->altered, false)) view->version = ++version_;
  SendToSessions(txn, *iteration, *view);
  const auto sessions = shared_.SessionsOf(id);
  if (std::ranges::none_of(sessions, [](const auto& peer) { return peer->membership != 0; }))
    views_.erase(id);  // none was welcomed
  return true;
}

MembershipSender::OfReaders MembershipSender::Divide(const protocol::IterationRecord& record,
                                                     const Concerned& concerned,
                                                     std::set<PartitionId>& of_all) {
  OfReaders of_readers;
  for (const auto& [partition, readers] : concerned) {
    if (!record.partition(partition).audience) {
      of_all.insert(partition);
      continue;
    }
    const IndexSet told =
        readers.value_or(IndexSet::Of(0, static_cast<Index>(record.readers.size())));
    protocol::ForEach(told, [&, at = partition](size_t reader) { of_readers[reader].insert(at); });
  }
  return of_readers;
}

void MembershipSender::SendToSessions(Transaction& txn, const IterationState& iteration,
                                      View& view) {
  std::set<PartitionId> of_all;
  OfReaders of_readers = Divide(iteration.record, std::exchange(view.partitions, {}), of_all);
  view.opened = 0;
  const bool to_all = std::exchange(view.concerns_all, false) || !of_all.empty();
  const auto change_for = [&](std::optional<size_t> reader, uint64_t since,
                              const std::set<PartitionId>& partitions) {
    Membership change =
        MembershipChangeOf(shared_.state, iteration, EndsOf(txn, shared_.state, iteration),
                           view.version, reader, partitions);
    change.since = since;
    return change;
  };
  std::map<uint64_t, std::shared_ptr<const ClientDown>> messages;  // by `since`
  for (const auto& peer : shared_.SessionsOf(iteration.id)) {
    if (peer->membership == 0 || peer->membership == view.version) continue;
    const auto reader = iteration.record.FindReader(peer->client);
    const auto its = reader ? of_readers.find(*reader) : of_readers.end();
    if (!to_all && its == of_readers.end()) continue;
    view.sent = shared_.options.now();
    const uint64_t since = std::exchange(peer->membership, view.version);
    if (its != of_readers.end()) {
      its->second.insert(of_all.begin(), of_all.end());
      txn.Send(peer, change_for(reader, since, its->second));
      continue;
    }
    std::shared_ptr<const ClientDown>& message = messages[since];
    if (message == nullptr)
      message = std::make_shared<const ClientDown>(change_for(std::nullopt, since, of_all));
    txn.SendShared(peer, message);
  }
}

}  // namespace penstock::control
