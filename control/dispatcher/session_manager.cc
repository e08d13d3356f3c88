// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/session_manager.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/transaction.h"

namespace penstock::control {

SessionManager::ConsumerNews SessionManager::OnConsumerBeat(const ClientPeer& peer,
                                                            const std::vector<StepMark>& marks) {
  if (!peer.iteration) return {};
  ConsumerNews news{.back = consumers_.IsLost(peer)};
  if (!marks.empty()) news.torn = consumers_.AuditSteps(peer, marks);
  if (!news.torn.empty()) news.torn_in = peer.iteration;
  return news;
}

void SessionManager::OnConsumerNews(Transaction& txn, const ClientPeer& peer,
                                    const ConsumerNews& news) {
  if (peer.iteration) consumers_.Heard(txn, peer);
  if (news.torn_in) consumers_.EndTornReading(txn, news.torn_in, news.torn);
}

void SessionManager::AnswerHeartbeat(Transaction& txn, const ClientPeer& peer, uint64_t counter) {
  const HeartbeatSession::Beat& waiting = peer.heartbeats.waiting;
  const bool on_its_way = shared_.sequence > waiting.last_record;
  if (on_its_way) {
    counter = waiting.counter;
  } else {
    txn.AppendAnyway();
  }
  txn.WhenDurable([writer = peer.writer, counter](const absl::Status& durable) {
    if (durable.ok()) writer->Send(ClientHeartbeatAnswer{counter}, 0);
  });
}

void SessionManager::OnMessage(Transaction& txn, const std::shared_ptr<ClientPeer>& peer,
                               const ClientUp& message) {
  absl::Status broken;
  txn.Guard([&] { Handle(txn, peer, message); }, &broken);
  const bool is_hello = std::holds_alternative<ClientHello>(message);
  if (!broken.ok() && is_hello && !peer->iteration) txn.Close(peer, broken);
}

void SessionManager::Handle(Transaction& txn, const std::shared_ptr<ClientPeer>& peer,
                            const ClientUp& message) {
  if (const auto* hello = std::get_if<ClientHello>(&message)) return OnHello(txn, peer, *hello);
  if (!peer->iteration) return;  // the session is over; this message was sent before
  if (!state_.GoesOn(state_.iterations.at(peer->iteration))) return;
  liveness_.Heard(SessionKey(peer->iteration, peer->client));
  consumers_.Heard(txn, *peer);
  if (const auto* answer = std::get_if<FenceAnswer>(&message)) {
    OnReports(txn, *peer, {&answer->report, 1}, /*complete=*/false);
  } else if (const auto* report = std::get_if<Report>(&message)) {
    // Handles errors first, so that a round is agreed on together with the errors in its elements.
    if (report->rounds) {
      const IterationState& iteration = state_.iterations.at(peer->iteration);
      const absl::Status may_be =
          protocol::OnRoundErrors(iteration.record, txn.GetContext(iteration.id), peer->client,
                                  peer->incarnation, report->rounds->errors);
      if (!may_be.ok()) return txn.Close(peer, may_be);
    }
    OnReports(txn, *peer, report->partitions, report->complete);
    if (report->waits) {
      const IterationId iteration = peer->iteration;
      protocol::OnWaits(state_.iterations.at(iteration).record, txn.GetContext(iteration),
                        peer->client, peer->incarnation);
      txn.Settle(iteration, {});
    }
    if (report->rounds) {
      const IterationState& iteration = state_.iterations.at(peer->iteration);
      protocol::IterationContext& context = txn.GetContext(iteration.id);
      const absl::Status may_be = protocol::CheckRoundsReport(
          iteration.record, context, peer->client, peer->incarnation, *report->rounds);
      if (!may_be.ok()) return txn.Close(peer, may_be);
      txn.Settle(iteration.id, protocol::OnRoundsReport(iteration.record, context, peer->client,
                                                        peer->incarnation, *report->rounds));
    }
  } else if (const auto* commit = std::get_if<Commit>(&message)) {
    OnCommit(txn, peer, *commit);
  } else if (const auto* limit = std::get_if<ReceiveLimit>(&message)) {
    OnReceiveLimit(txn, *peer, *limit);
  } else if (const auto* leave = std::get_if<Leave>(&message)) {
    OnLeave(txn, *peer, *leave);
  }
}

void SessionManager::OnClosed(Transaction& txn, const std::shared_ptr<ClientPeer>& peer) {
  auto found = sessions_.find({peer->iteration, peer->client});
  if (found == sessions_.end() || found->second != peer) return;
  sessions_.erase(found);
  txn.Guard([&] {
    if (!leaving_) {
      consumers_.Suspect(txn, {peer->iteration, peer->client},
                         {.text = "its connection to the dispatcher ended", .ended = true});
    }
    const IterationState& iteration = state_.iterations.at(peer->iteration);
    protocol::OnDisconnect(iteration.record, txn.GetContext(iteration.id), peer->client);
    if (!iteration.record.FindReader(peer->client)) {
      ForgetLease({peer->iteration, peer->client});
    }
  });
  peer->iteration = IterationId();
}

void SessionManager::OnUnreadable(Transaction& txn, const std::shared_ptr<ClientPeer>& peer,
                                  const absl::Status& why) {
  const std::string client = absl::StrCat(absl::Hex(peer->client.value()));
  txn.Log("unreadable", {{"client", client}, {"why", std::string(why.message())}});
  txn.Guard([&] {
    txn.Close(peer, absl::InvalidArgumentError(absl::StrCat(
                        "the dispatcher cannot read a message from client ", client, ": ",
                        why.message(), "; if both run the same release, report this")));
  });
}

void SessionManager::Expire(Transaction& txn, absl::Time now) {
  for (const SessionKey& key : liveness_.ExpiredClients(now)) {
    if (liveness_.IsSpared(key, now)) continue;
    const absl::Time heard = now - liveness_.SilenceOf(key, now);
    if (!liveness_.TakeExpired(key, now)) continue;  // a heartbeat has just renewed it
    ForgetLease(key);
    const IterationState* iteration = state_.FindIteration(key.first);
    if (iteration == nullptr || !state_.GoesOn(*iteration)) continue;
    txn.Log("client_dead", {{"client", absl::StrCat(absl::Hex(key.second.value()))},
                            {"iteration", absl::StrCat(key.first.value())}});
    consumers_.DeclareDead(txn, key, heard);
    txn.Settle(key.first,
               protocol::OnReaderExpired(iteration->record, txn.GetContext(key.first), key.second));
    // Still connected: it was not refused. Its heartbeats on this stream are no longer answered.
    if (const auto peer = sessions_.find(key); peer != sessions_.end())
      SendBack(txn, *peer->second, absl::AbortedError("the session's lease ran out"));
  }
}

void SessionManager::SendBack(Transaction& txn, const ClientPeer& peer, const absl::Status& why) {
  txn.WhenDurable([writer = peer.writer, aborted = absl::AbortedError(why.message())](
                      const absl::Status&) { writer->Finish(aborted); });
}

void SessionManager::ForgetLease(const SessionKey& key) {
  liveness_.Forget(key);
  links_.Forget(key);  // before ClientLeft(), as Core::OnHeartbeat() needs it
  if (const IterationState* iteration = state_.FindIteration(key.first)) {
    scaling_.ClientLeft(iteration->job, key.second, options_.now());
  }
}

}  // namespace penstock::control
