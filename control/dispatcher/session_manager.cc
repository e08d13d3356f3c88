// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/session_manager.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/monitoring/counters.h"
#include "control/dispatcher/refusals.h"
#include "control/dispatcher/transaction.h"

namespace penstock::control {
namespace {

// Refuses partitions that do not exist: their numbers are not trusted.
absl::StatusOr<protocol::ReceivedSets> ToReceivedSets(const std::vector<PartitionIndices>& from,
                                                      const IterationState& iteration) {
  protocol::ReceivedSets sets;
  for (const PartitionIndices& of : from) {
    if (of.indices.empty()) continue;
    if (!iteration.record.Has(of.partition)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the state names ", ToString(of.partition), ", but the iteration has ",
          iteration.record.partitions.size(), " partitions; the state belongs to a different job"));
    }
    protocol::At(sets, of.partition).Add(of.indices);
  }
  return sets;
}

// Checks that the elements of rounds, or of one order, are read by consumers that keep their
// numbers, or by one reader.
absl::Status CheckAlone(const JobRecord& job, const IterationState& iteration,
                        const ClientHello& hello) {
  if (iteration.record.has_order_consumers() || iteration.record.coordinated()) {
    const auto known = iteration.record.FindReader(hello.client);
    if (!known || iteration.record.readers[*known].consumer == hello.consumer) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "the state belongs to consumer ", iteration.record.readers[*known].consumer, " of job ",
        job.name, ", but consumer_index is ", hello.consumer,
        "; give it to that consumer, or restore the states of all ranks (MergeRankStates) "
        "in a new job"));
  }
  if (!job.terms.deterministic) return absl::OkStatus();
  if (iteration.record.closed) return absl::OkStatus();
  const auto& readers = iteration.record.readers;
  const bool alone = std::all_of(readers.begin(), readers.end(), [&](const auto& reader) {
    return reader.client == hello.client || reader.status != protocol::ReaderStatus::kActive;
  });
  if (alone) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "job ", job.name,
      " has order kDeterministic, which allows one reader at a time, and another client is reading "
      "it; wait until that client has left or has been silent for client_timeout, or Restore() its "
      "state; for several readers, set num_consumers"));
}

}  // namespace

SessionManager::Beat SessionManager::OnHeartbeat(ClientPeer& peer, ClientHeartbeat heartbeat) {
  const absl::Time now = options_.now();
  const JobId job = state_.iterations.at(peer.iteration).job;
  liveness_.Heard(SessionKey(peer.iteration, peer.client), now);
  Beat beat{.due = NoteHeartbeat(peer, heartbeat.counter, now)};
  beat.renewed = peer.renewed;
  links_.Heard(peer, std::move(heartbeat.links), now);
  scaling_.OnClientSteps(job, peer.client, peer.incarnation, heartbeat.steps, now);
  beat.back = consumers_.IsLost(peer);
  if (!heartbeat.marks.empty()) beat.torn = consumers_.AuditSteps(peer, heartbeat.marks);
  if (!beat.torn.empty()) beat.torn_in = peer.iteration;
  if (heartbeat.at_quota && !peer.at_quota) beat.slowed = state_.jobs.at(job).name;
  peer.at_quota = heartbeat.at_quota;
  return beat;
}

void SessionManager::OnConsumerBeat(Transaction& txn, const ClientPeer& peer, const Beat& beat) {
  if (peer.iteration) consumers_.Heard(txn, peer);
  if (beat.torn_in) consumers_.EndTornReading(txn, beat.torn_in, beat.torn);
}

void SessionManager::AnswerHeartbeat(Transaction& txn, const ClientPeer& peer, uint64_t counter) {
  const bool on_its_way = shared_.sequence > peer.waiting.last_record;
  if (on_its_way) {
    counter = peer.waiting.counter;
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
  if (!peer->iteration) return;  // it was told the reason; this message was on its way
  if (!state_.GoesOn(state_.iterations.at(peer->iteration))) return;
  liveness_.Heard(SessionKey(peer->iteration, peer->client), options_.now());
  consumers_.Heard(txn, *peer);
  if (const auto* answer = std::get_if<FenceAnswer>(&message)) {
    OnReports(txn, *peer, {&answer->report, 1});
  } else if (const auto* report = std::get_if<Report>(&message)) {
    // Handles errors first, so that a round is agreed on together with the errors in its elements.
    if (report->rounds) {
      const IterationState& iteration = state_.iterations.at(peer->iteration);
      const absl::Status may_be =
          protocol::OnRoundErrors(iteration.record, txn.GetContext(iteration.id), peer->client,
                                  peer->incarnation, report->rounds->errors);
      if (!may_be.ok()) return txn.Close(peer, may_be);
    }
    OnReports(txn, *peer, report->partitions);
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

bool SessionManager::NoteHeartbeat(ClientPeer& peer, uint64_t counter, absl::Time now) const {
  ClientPeer::Beat& waiting = peer.waiting;
  if (waiting.counter != 0 && shared_.durable > waiting.last_record) {
    peer.renewed = waiting.counter;
    waiting = {};
  }
  if (waiting.counter == 0) waiting = {counter, shared_.sequence, now};
  return now + options_.heartbeat_interval - waiting.since >= options_.client_timeout / 8;
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
    txn.Close(peer, absl::InvalidArgumentError(
                        absl::StrCat("the dispatcher cannot read a message of client ", client,
                                     ": ", why.message(), "; run one release everywhere")));
  });
}

const IterationState* SessionManager::FindOrRecall(Transaction& txn, JobId job,
                                                   int64_t repetition) {
  if (state_.past.contains({job, repetition})) txn.Apply(IterationRecalled{job, repetition});
  return state_.FindIteration(job, repetition);
}

void SessionManager::OnHello(Transaction& txn, const std::shared_ptr<ClientPeer>& peer,
                             const ClientHello& hello) {
  if (peer->iteration) {
    return txn.Close(peer,
                     absl::InvalidArgumentError(absl::StrCat(
                         "client ", absl::Hex(peer->client.value()),
                         " sent a second hello on its stream; open one stream for each session")));
  }
  if (absl::Status supported = CheckVersion(hello.version, "the client"); !supported.ok()) {
    return txn.Close(peer, supported);
  }
  const JobRecord* job = state_.FindJob(hello.job);
  if (job == nullptr) {
    return txn.Close(peer, absl::NotFoundError(absl::StrCat(
                               ToString(hello.job),
                               " is not known to this dispatcher; it was removed, had no reader "
                               "for job_gc_timeout or abandoned_job_ttl, or the dispatcher "
                               "restarted without a journal")));
  }
  if (absl::Status its = lives_.Check(txn, *job, hello); !its.ok()) return txn.Close(peer, its);
  if (job->cancelled) {
    return txn.Close(peer, absl::CancelledError(absl::StrCat("job ", job->name, " was cancelled")));
  }
  if (hello.repetition < 0) {
    return txn.Close(peer, absl::InvalidArgumentError(absl::StrCat(
                               "repetition is ", hello.repetition, "; it must not be negative")));
  }
  if (hello.repetition > 0 && job->terms.cross_trainer_cache) {
    return txn.Close(peer, absl::InvalidArgumentError(absl::StrCat(
                               "cross-trainer caching allows one repetition, but job ", job->name,
                               " was asked for repetition ", hello.repetition)));
  }
  const IterationState* iteration = FindOrRecall(txn, job->id, hello.repetition);
  const bool begins = iteration == nullptr ||
                      (!iteration->record.finished && !iteration->record.FindReader(hello.client));
  if (begins) {
    if (absl::Status there = jobs_.CheckLocalWorkers(*job, hello); !there.ok()) {
      return txn.Close(peer, there);
    }
  }
  if (iteration == nullptr) {
    absl::StatusOr<Division> division = jobs_.DivisionOf(*job, hello, placer_.UsableWorkers());
    if (absl::IsUnavailable(division.status())) {  // Aborted: it retries, and knows that we are up
      return txn.WhenDurable(
          [writer = peer->writer, why = absl::AbortedError(division.status().message())](
              const absl::Status&) { writer->Finish(why); });
    }
    if (!division.ok()) return txn.Close(peer, division.status());
    const IterationId id(state_.next_iteration);
    txn.Apply(IterationCreated{id, job->id, hello.repetition, *std::move(division)});
    txn.Settle(id, {});
    iteration = state_.FindIteration(id);
  }
  if (iteration->failure.has_value()) return txn.Close(peer, *iteration->failure);

  if (hello.consumer != -1 ? hello.consumer < 0 || hello.consumer >= job->terms.num_consumers
                           : job->terms.num_consumers > 0) {
    return txn.Close(peer, absl::FailedPreconditionError(absl::StrCat(
                               "consumer_index is ", hello.consumer, ", but job ", job->name,
                               " has ", job->terms.num_consumers, " consumers")));
  }
  if (absl::Status alone = CheckAlone(*job, *iteration, hello); !alone.ok()) {
    return txn.Close(peer, alone);
  }
  protocol::Connect connect{hello.client, hello.incarnation, std::nullopt, hello.consumer,
                            std::max<int64_t>(hello.round, 0)};
  // A process that was welcomed before has received more than the state that it began with.
  const auto before = iteration->record.FindReader(hello.client);
  const bool welcomed =
      before && iteration->record.readers[*before].incarnation == hello.incarnation;
  if (hello.state.has_value() && !welcomed) {
    absl::StatusOr<protocol::ReceivedSets> state = ToReceivedSets(*hello.state, *iteration);
    if (!state.ok()) return txn.Close(peer, state.status());
    connect.state = *std::move(state);
  }
  protocol::Decision decision =
      protocol::OnConnect(iteration->record, txn.GetContext(iteration->id), connect);
  for (const protocol::Message& message : decision.messages) {
    const auto* refused = std::get_if<protocol::Refused>(&message);
    if (refused != nullptr && refused->incarnation == hello.incarnation) {
      return txn.Close(peer, ToStatus(*refused));
    }
  }

  const SessionKey key{iteration->id, hello.client};
  // From here on the session has this stream: closing the previous one disconnects no client.
  if (const std::shared_ptr<ClientPeer> old = std::exchange(sessions_[key], peer); old != nullptr) {
    if (old->incarnation != hello.incarnation) {
      txn.Close(old, ToStatus({hello.client, old->incarnation, protocol::Refusal::kReplaced}));
    } else {
      old->iteration = IterationId();
      txn.WhenDurable([writer = old->writer](const absl::Status&) {
        writer->Finish(absl::AbortedError("the session has a newer stream"));
      });
    }
  }
  if (begins) CountIterator(job->terms);
  peer->iteration = iteration->id;
  peer->client = hello.client;
  peer->incarnation = hello.incarnation;
  peer->process = hello.process;
  peer->consumer = hello.consumer;
  liveness_.Joined(key);
  txn.AppendAnyway();  // the Welcome gives a lease
  jobs_.NoteRead(job->id);
  txn.Log("client_joined", {{"client", absl::StrCat(absl::Hex(hello.client.value()))},
                            {"iteration", absl::StrCat(iteration->id.value())},
                            {"restored", hello.state.has_value() ? "yes" : "no"}});
  txn.Settle(iteration->id, std::move(decision));
  if (welcomed && iteration->record.readers[*before].status == protocol::ReaderStatus::kLeft) {
    return ForgetLease(key);  // it was notified that it has left
  }
  const protocol::IterationContext& context = txn.GetContext(iteration->id);
  if (std::any_of(context.partitions.begin(), context.partitions.end(),
                  [](const auto& partition) { return partition.ended; })) {
    txn.Send(peer, ReportAtOnce{});
  }
  placer_.Balance(txn, iteration->id);  // partitions may have waited for it
  if (peer->consumer >= 0) consumers_.Joined(txn, peer);
}

// Returns whether the report names elements that were unknown so far. Elements received before a
// death may be reported as delivered long after it.
static bool HasNews(const protocol::IterationRecord& record,
                    const protocol::IterationContext& context, ClientId client,
                    const PartitionReport& report) {
  const std::optional<size_t> reader = record.FindReader(client);
  if (!reader) return false;
  IndexSet news = report.received;
  news.Add(report.delivered);
  news.Remove(context.partitions[report.partition.value() - 1].readers[*reader].reported);
  return !news.empty();
}

void SessionManager::OnReports(Transaction& txn, const ClientPeer& peer,
                               absl::Span<const PartitionReport> reports) {
  if (reports.empty()) return;
  const IterationState& iteration = state_.iterations.at(peer.iteration);
  protocol::Decision decision;
  for (const PartitionReport& of : reports) {
    const PartitionKey key{iteration.id, of.partition};
    if (placer_.HasFailed(key) && !of.whole &&
        HasNews(iteration.record, txn.GetContext(iteration.id), peer.client, of)) {
      placer_.NoteProgress(key);
    }
    protocol::Decision one = protocol::OnReport(iteration.record, txn.GetContext(iteration.id),
                                                peer.client, peer.incarnation, of);
    std::move(one.changes.begin(), one.changes.end(), std::back_inserter(decision.changes));
    std::move(one.messages.begin(), one.messages.end(), std::back_inserter(decision.messages));
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
    if (!reader) {  // it joined after the end, and read nothing
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
  for (auto& [id, part] : of) {
    const IterationState& iteration = state_.iterations.at(id);
    protocol::Decision decision = protocol::OnCommit(iteration.record, txn.GetContext(id),
                                                     peer->client, peer->incarnation, part);
    // One answer for all repetitions is sent below.
    std::erase_if(decision.messages, [](const protocol::Message& message) {
      return std::holds_alternative<protocol::ToClient<Committed>>(message);
    });
    txn.Settle(id, std::move(decision));
  }
  txn.Send(peer, Committed{commit.number});
  txn.Log("committed", {{"client", absl::StrCat(absl::Hex(peer->client.value()))},
                        {"number", absl::StrCat(commit.number)}});
}

void SessionManager::OnLeave(Transaction& txn, const ClientPeer& peer, const Leave& leave) {
  const IterationState& iteration = state_.iterations.at(peer.iteration);
  absl::StatusOr<protocol::ReceivedSets> delivered = ToReceivedSets(leave.delivered, iteration);
  if (!delivered.ok()) delivered = protocol::ReceivedSets();  // then it commits nothing
  const SessionKey key{peer.iteration, peer.client};
  ForgetLease(key);
  txn.Log("client_left", {{"client", absl::StrCat(absl::Hex(peer.client.value()))},
                          {"iteration", absl::StrCat(iteration.id.value())}});
  txn.Settle(iteration.id,
             protocol::OnLeave(iteration.record, txn.GetContext(iteration.id), peer.client,
                               peer.incarnation, {*std::move(delivered)}));
  const auto reader = iteration.record.FindReader(peer.client);
  if (reader && iteration.record.readers[*reader].status == protocol::ReaderStatus::kActive) {
    // Restarts the lease: another process may resume from its state until the timeout.
    liveness_.Heard(key, options_.now());
  }
}

void SessionManager::Expire(Transaction& txn, absl::Time now) {
  for (const SessionKey& key : liveness_.ExpiredClients(now)) {
    if (liveness_.IsSpared(key, now)) continue;
    const absl::Time heard = now - liveness_.SilenceOf(key, now);
    ForgetLease(key);
    const IterationState* iteration = state_.FindIteration(key.first);
    if (iteration == nullptr || !state_.GoesOn(*iteration)) continue;
    txn.Log("client_dead", {{"client", absl::StrCat(absl::Hex(key.second.value()))},
                            {"iteration", absl::StrCat(key.first.value())}});
    consumers_.DeclareDead(txn, key, heard);
    txn.Settle(key.first,
               protocol::OnReaderExpired(iteration->record, txn.GetContext(key.first), key.second));
  }
}

void SessionManager::ForgetLease(const SessionKey& key) {
  liveness_.Forget(key);
  if (const IterationState* iteration = state_.FindIteration(key.first)) {
    scaling_.ClientLeft(iteration->job, key.second, options_.now());
  }
  links_.Forget(key);
}

}  // namespace penstock::control
