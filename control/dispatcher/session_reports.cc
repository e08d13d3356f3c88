// SPDX-License-Identifier: Apache-2.0
// Handles the reports of a client: which elements it has received, delivered and committed, and how
// many more it accepts.
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/messages/refusals.h"
#include "control/dispatcher/session_manager.h"
#include "control/dispatcher/transaction.h"

namespace penstock::control {

// Returns whether the report names elements that no earlier report named. A client may report
// elements as delivered long after the death of the worker from which it received them.
static bool HasNews(const protocol::IterationRecord& record,
                    const protocol::IterationContext& context, ClientId client,
                    const PartitionReport& report) {
  const std::optional<size_t> reader = record.FindReader(client);
  if (!reader) return false;
  IndexSet news = report.received;
  news.Add(report.delivered);
  news.Remove(context.partitions[report.partition.value() - 1].acks.Of(*reader).reported);
  news.Remove(protocol::Of(record.readers[*reader].committed, report.partition));
  return !news.empty();
}

void SessionManager::OnReports(Transaction& txn, const ClientPeer& peer,
                               absl::Span<const PartitionReport> reports, bool complete) {
  if (reports.empty() && !complete) return;
  const IterationState& iteration = state_.iterations.at(peer.iteration);
  protocol::Decision decision;
  const auto add = [&decision](protocol::Decision one) {
    std::move(one.changes.begin(), one.changes.end(), std::back_inserter(decision.changes));
    std::move(one.messages.begin(), one.messages.end(), std::back_inserter(decision.messages));
  };
  for (const PartitionReport& of : reports) {
    const PartitionKey key{iteration.id, of.partition};
    if (placer_.HasFailed(key) && !of.whole &&
        HasNews(iteration.record, txn.GetContext(iteration.id), peer.client, of)) {
      placer_.NoteProgress(key);
    }
    add(protocol::OnReport(iteration.record, txn.GetContext(iteration.id), peer.client,
                           peer.incarnation, of));
    txn.counts().Reported(iteration.id, iteration.record, txn.GetContext(iteration.id), peer.client,
                          peer.incarnation, of);
  }
  if (complete) {
    add(protocol::OnReportsComplete(iteration.record, txn.GetContext(iteration.id), peer.client,
                                    peer.incarnation));
    txn.counts().Completed(iteration.id, peer.client);
  }
  txn.Settle(iteration.id, std::move(decision));
}

void SessionManager::OnReceiveLimit(Transaction& txn, const ClientPeer& peer,
                                    const ReceiveLimit& limit) {
  const IterationState& iteration = state_.iterations.at(peer.iteration);
  if (!state_.jobs.at(iteration.job).terms.deterministic) return;
  for (const ReceiveLimit::OfPartition& of : limit.partitions) {
    protocol::OnReceiveLimit(iteration.record, txn.GetContext(iteration.id), peer.client,
                             peer.incarnation, of.partition, of.below);
  }
  txn.Settle(iteration.id, {});
}

void SessionManager::CommitOne(Transaction& txn, IterationId iteration, ClientId client,
                               const protocol::Commit& commit) {
  const protocol::IterationRecord& record = state_.iterations.at(iteration).record;
  const Incarnation process = record.readers[*record.FindReader(client)].incarnation;
  protocol::Decision decision =
      protocol::OnCommit(record, txn.GetContext(iteration), client, process, commit);
  std::erase_if(decision.messages, [](const protocol::Message& message) {
    return std::holds_alternative<protocol::ToClient<Committed>>(message);
  });
  txn.Settle(iteration, std::move(decision));
}

// Commits all repetitions that the state contains, or none.
void SessionManager::OnCommit(Transaction& txn, const std::shared_ptr<ClientPeer>& peer,
                              const Commit& commit) {
  const JobId job = state_.iterations.at(peer->iteration).job;
  std::vector<std::pair<IterationId, protocol::Commit>> of;
  for (const Commit::OfRepetition& repetition : commit.repetitions) {
    const IterationState* iteration = FindOrRecall(txn, job, repetition.repetition);
    if (iteration == nullptr) {
      return txn.Close(
          peer, absl::InvalidArgumentError(absl::StrCat(
                    "the commit names repetition ", repetition.repetition, ", which never began")));
    }
    absl::StatusOr<protocol::ReceivedSets> committed =
        ToReceivedSets(repetition.committed, *iteration);
    if (!committed.ok()) return txn.Close(peer, committed.status());
    auto reader = iteration->record.FindReader(peer->client);
    if (!reader) {  // the client joined after the end, and read nothing
      if (committed->empty()) continue;
      return txn.Close(peer, absl::InvalidArgumentError(absl::StrCat(
                                 "the commit names elements of repetition ", repetition.repetition,
                                 ", which the client did not read")));
    }
    const protocol::ReaderRecord& record = iteration->record.readers[*reader];
    const bool its_own =
        record.status == protocol::ReaderStatus::kActive && record.incarnation == peer->incarnation;
    if (!its_own && !protocol::HasCommitted(iteration->record, record, *committed)) {
      return txn.Close(
          peer, ToStatus({peer->client, peer->incarnation, protocol::Refusal::kStateIsNewer}));
    }
    of.push_back({iteration->id, {commit.number, *std::move(committed)}});
  }
  for (const auto& [id, part] : of) CommitOne(txn, id, peer->client, part);
  txn.Send(peer, Committed{commit.number});
  txn.Log("committed", {{"client", absl::StrCat(absl::Hex(peer->client.value()))},
                        {"number", absl::StrCat(commit.number)}});
}

void SessionManager::OnLeave(Transaction& txn, const ClientPeer& peer, const Leave& leave) {
  const IterationState& iteration = state_.iterations.at(peer.iteration);
  absl::StatusOr<protocol::ReceivedSets> delivered = ToReceivedSets(leave.delivered, iteration);
  if (!delivered.ok()) delivered = protocol::ReceivedSets();  // then leaving commits no elements
  const SessionKey key{peer.iteration, peer.client};
  ForgetLease(key);
  txn.Log("client_left", {{"client", absl::StrCat(absl::Hex(peer.client.value()))},
                          {"iteration", absl::StrCat(iteration.id.value())}});
  txn.Settle(iteration.id,
             protocol::OnLeave(iteration.record, txn.GetContext(iteration.id), peer.client,
                               peer.incarnation, {*std::move(delivered)}));
  const auto reader = iteration.record.FindReader(peer.client);
  if (reader && iteration.record.readers[*reader].status == protocol::ReaderStatus::kActive) {
    // Restarts the lease, because until the lease expires, another process may resume from the
    // client's state.
    liveness_.Heard(key);
  }
}

}  // namespace penstock::control
