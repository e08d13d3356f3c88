// SPDX-License-Identifier: Apache-2.0
// Handles hellos: a client begins its session, or continues it on another stream.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/messages/refusals.h"
#include "control/dispatcher/messages/texts.h"
#include "control/dispatcher/monitoring/counters.h"
#include "control/dispatcher/session_manager.h"
#include "control/dispatcher/transaction.h"
#include "control/observe/refused.h"
#include "control/policy/authorization.h"
#include "control/protocol/scoped_name.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

// Checks that a client may join a coordinated read or a fixed order. With `num_consumers`, each
// consumer must keep its number. In a fixed order without `num_consumers`, only one reader may read
// at a time.
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

// Returns whether the hello needs no place among the clients that read. There are three cases:
// - The repetition is finished, so the client gets only its end.
// - The client returns to its repetition. Others may need it there: the repetition cannot end
//   without the elements that only this client may have, nor a round without its consumer.
// - The client has read the repetition before, which is finished, and still has a stream to it. It
//   has given up its place only for the moment between the two.
bool NeedsNoPlace(const State& state, const Sessions& sessions, JobId job,
                  const ClientHello& hello) {
  if (state.past.contains({job, hello.repetition})) return true;
  const IterationState* asked = state.FindIteration(job, hello.repetition);
  if (asked != nullptr && (asked->record.finished || asked->record.FindReader(hello.client)))
    return true;
  const IterationState* before = state.FindIteration(job, hello.repetition - 1);
  return before != nullptr && before->record.finished && before->record.FindReader(hello.client) &&
         sessions.contains({before->id, hello.client});
}

// Returns whether the client reads an iteration of the job that is not finished.
bool IsReading(const State& state, const JobRecord& job, ClientId client) {
  return std::ranges::any_of(state.IterationsOf(job.id), [&](IterationId id) {
    const IterationState& iteration = state.iterations.at(id);
    const auto reader = iteration.record.FindReader(client);
    return reader && !iteration.record.finished && state.GoesOn(iteration) &&
           iteration.record.readers[*reader].status == protocol::ReaderStatus::kActive;
  });
}

}  // namespace

absl::StatusOr<protocol::ReceivedSets> SessionManager::ToReceivedSets(
    const std::vector<PartitionIndices>& from, const IterationState& iteration) {
  protocol::ReceivedSets sets;
  for (const PartitionIndices& of : from) {
    if (of.indices.empty()) continue;
    if (!iteration.record.Has(of.partition)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the state names ", ToString(of.partition), ", but the iteration has ",
          iteration.record.partitions.size(), " partitions; the state belongs to a different job"));
    }
    sets.Add(of.partition, of.indices);
  }
  return sets;
}

const IterationState* SessionManager::FindOrRecall(Transaction& txn, JobId job,
                                                   int64_t repetition) {
  if (state_.past.contains({job, repetition})) txn.Apply(IterationRecalled{job, repetition});
  return state_.FindIteration(job, repetition);
}

absl::StatusOr<const JobRecord*> SessionManager::CheckHello(Transaction& txn,
                                                            const ClientPeer& peer,
                                                            const ClientHello& hello) {
  if (peer.iteration) {
    return absl::InvalidArgumentError(
        absl::StrCat("client ", absl::Hex(peer.client.value()),
                     " sent a second hello on its stream; open one stream for each session"));
  }
  RETURN_IF_ERROR(AgreeOnVersion(hello.version, "the client").status());
  RETURN_IF_ERROR(CheckTexts(hello));
  const JobRecord* job = state_.FindJob(hello.job);
  if (job == nullptr) {
    RETURN_IF_ERROR(AuthorizeByRole(Action::kReadJob, peer.caller));
    return absl::NotFoundError(
        absl::StrCat(ToString(hello.job),
                     " is not known to this dispatcher; it was removed, had no reader "
                     "for job_gc_timeout or abandoned_job_ttl, or the dispatcher "
                     "restarted without a journal"));
  }
  RETURN_IF_ERROR(Authorize(Action::kReadJob, peer.caller, *job));
  RETURN_IF_ERROR(lives_.Check(txn, *job, hello));
  if (job->cancelled) {
    return absl::CancelledError(absl::StrCat("job ", job->name, " was cancelled"));
  }
  if (hello.repetition < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("repetition is ", hello.repetition, "; it must not be negative"));
  }
  if (hello.repetition > 0 && job->terms.cross_trainer_cache) {
    return absl::InvalidArgumentError(
        absl::StrCat("cross-trainer caching allows one repetition, but job ", job->name,
                     " was asked for repetition ", hello.repetition));
  }
  RETURN_IF_ERROR(CheckLimit(*job, hello));
  return job;
}

// Checks the limit of clients of the job's namespace. A client has a place in its job while it
// reads an iteration that is not finished. Aborted, so that the client tries again, if the client
// begins a later repetition: it has read before, and another client may have taken its place
// meanwhile.
absl::Status SessionManager::CheckLimit(const JobRecord& job, const ClientHello& hello) const {
  const std::string_view name_space = NamespaceOf(job.name);
  const absl::Status room =
      shared_.options.quotas.CheckClients(name_space, state_.uses.Of(name_space).clients);
  if (room.ok() || IsReading(state_, job, hello.client) ||
      NeedsNoPlace(state_, sessions_, job.id, hello)) {
    return absl::OkStatus();
  }
  const bool began =
      hello.repetition > 0 && (state_.past.contains({job.id, hello.repetition - 1}) ||
                               state_.FindIteration(job.id, hello.repetition - 1));
  return began ? absl::AbortedError(room.message()) : room;
}

absl::Status SessionManager::CheckOpenIterations(const JobRecord& job) const {
  const auto open = std::ranges::count_if(state_.iterations, [&](const auto& entry) {
    return entry.second.job == job.id && !entry.second.record.closed;
  });
  if (static_cast<size_t>(open) < kMaxOpenIterations) return absl::OkStatus();
  CountRefused(Port::kDispatcher, Refused::kTooMany);
  return absl::ResourceExhaustedError(
      absl::StrCat("job ", job.name, " has ", open, " repetitions that are not read to their end; ",
                   "the limit is ", kMaxOpenIterations, ". Use another job_name or run_id"));
}

absl::StatusOr<protocol::Connect> SessionManager::ConnectOf(const JobRecord& job,
                                                            const IterationState& iteration,
                                                            const ClientHello& hello,
                                                            bool with_state) {
  if (hello.consumer != -1 ? hello.consumer < 0 || hello.consumer >= job.terms.num_consumers
                           : job.terms.num_consumers > 0) {
    return absl::FailedPreconditionError(absl::StrCat("consumer_index is ", hello.consumer,
                                                      ", but job ", job.name, " has ",
                                                      job.terms.num_consumers, " consumers"));
  }
  RETURN_IF_ERROR(CheckAlone(job, iteration, hello));
  protocol::Connect connect{hello.client, hello.incarnation, std::nullopt, hello.consumer,
                            std::max<int64_t>(hello.round, 0)};
  ASSIGN_OR_RETURN(const uint32_t version, AgreeOnVersion(hello.version, "the client"));
  // In order kDeterministic, Welcome says of each partition which elements have been passed.
  connect.reports_all = version >= kFirstWithPartialWelcomes && !job.terms.deterministic;
  if (hello.state.has_value() && with_state) {
    ASSIGN_OR_RETURN(connect.state, ToReceivedSets(*hello.state, iteration));
  }
  return connect;
}

absl::Status SessionManager::ResumeOthers(Transaction& txn, const JobRecord& job,
                                          const ClientHello& hello) {
  std::vector<std::pair<IterationId, protocol::ReceivedSets>> resumed;
  for (const ClientHello::OfRepetition& other : hello.others) {
    const IterationState* iteration = FindOrRecall(txn, job.id, other.repetition);
    if (iteration == nullptr || !iteration->record.FindReader(hello.client)) continue;
    ASSIGN_OR_RETURN(protocol::ReceivedSets state, ToReceivedSets(other.state, *iteration));
    const protocol::Connect connect{hello.client, hello.incarnation, state, hello.consumer};
    if (const auto why =
            protocol::WhyRefused(iteration->record, txn.GetContext(iteration->id), connect))
      return ToStatus({hello.client, hello.incarnation, *why});
    resumed.emplace_back(iteration->id, std::move(state));
  }
  for (auto& [id, state] : resumed) CommitOne(txn, id, hello.client, {0, std::move(state)});
  return absl::OkStatus();
}

void SessionManager::TakeStream(Transaction& txn, const SessionKey& key,
                                const std::shared_ptr<ClientPeer>& peer, const ClientHello& hello) {
  // From here on the session has this stream, so closing the previous stream disconnects no client.
  if (const std::shared_ptr<ClientPeer> old = sessions_.Put(key, peer); old != nullptr) {
    if (old->incarnation != hello.incarnation) {
      txn.Close(old, ToStatus({hello.client, old->incarnation, protocol::Refusal::kReplaced}));
    } else {
      old->iteration = IterationId();
      txn.WhenDurable([writer = old->writer](const absl::Status&) {
        writer->Finish(absl::AbortedError("the session has a newer stream"));
      });
    }
  }
  peer->iteration = key.first;
  peer->client = hello.client;
  peer->incarnation = hello.incarnation;
  peer->process = hello.process;
  peer->consumer = hello.consumer;
  const JobId job = state_.iterations.at(key.first).job;
  peer->heartbeats = {.key = key,
                      .incarnation = hello.incarnation,
                      .stream = ++streams_,
                      .consumer = hello.consumer,
                      .job = job,
                      .job_name = state_.jobs.at(job).name};
  links_.Begin(key, hello.incarnation, peer->heartbeats.stream);
  peer->version = *AgreeOnVersion(hello.version, "the client");  // CheckHello() has checked it
  peer->release = hello.release;
}

void SessionManager::OnHello(Transaction& txn, const std::shared_ptr<ClientPeer>& peer,
                             const ClientHello& hello) {
  const absl::StatusOr<const JobRecord*> checked = CheckHello(txn, *peer, hello);
  if (absl::IsAborted(checked.status())) return SendBack(txn, *peer, checked.status());
  if (!checked.ok()) return txn.Close(peer, txn.AuditRefusal(checked.status()));
  const JobRecord* job = *checked;
  const IterationState* iteration = FindOrRecall(txn, job->id, hello.repetition);
  const bool begins = iteration == nullptr ||
                      (!iteration->record.finished && !iteration->record.FindReader(hello.client));
  if (begins) {
    if (absl::Status there = jobs_.CheckLocalWorkers(*job, hello); !there.ok()) {
      return txn.Close(peer, there);
    }
  }
  if (iteration == nullptr) {
    if (absl::Status room = CheckOpenIterations(*job); !room.ok()) return txn.Close(peer, room);
    absl::StatusOr<Division> division = jobs_.DivisionOf(*job, hello, placer_.Usable().all());
    if (absl::IsUnavailable(division.status())) return SendBack(txn, *peer, division.status());
    if (!division.ok()) return txn.Close(peer, division.status());
    const IterationId id(state_.next_iteration);
    txn.Apply(IterationCreated{id, job->id, hello.repetition, *std::move(division)});
    txn.Settle(id, {});
    iteration = state_.FindIteration(id);
  }
  if (iteration->failure.has_value()) return txn.Close(peer, *iteration->failure);

  // A process that was welcomed before has received elements that are not in the state with which
  // it began.
  const auto before = iteration->record.FindReader(hello.client);
  const bool welcomed =
      before && iteration->record.readers[*before].incarnation == hello.incarnation;
  absl::StatusOr<protocol::Connect> connect = ConnectOf(*job, *iteration, hello, !welcomed);
  if (!connect.ok()) return txn.Close(peer, connect.status());
  if (connect->state.has_value()) {
    const IterationId id = iteration->id;
    if (const auto why = protocol::WhyRefused(iteration->record, txn.GetContext(id), *connect))
      return txn.Close(peer, ToStatus({hello.client, hello.incarnation, *why}));
    if (absl::Status others = ResumeOthers(txn, *job, hello); !others.ok())
      return txn.Close(peer, others);
    iteration = state_.FindIteration(id);  // others may have been recalled
  }
  protocol::Decision decision =
      protocol::OnConnect(iteration->record, txn.GetContext(iteration->id), *connect);
  for (const protocol::Message& message : decision.messages) {
    const auto* refused = std::get_if<protocol::Refused>(&message);
    if (refused != nullptr && refused->incarnation == hello.incarnation) {
      return txn.Close(peer, ToStatus(*refused));
    }
  }

  const SessionKey key{iteration->id, hello.client};
  TakeStream(txn, key, peer, hello);
  if (begins) CountIterator(job->terms);
  liveness_.Joined(key, peer->heartbeats.stream);
  txn.AppendAnyway();  // the Welcome gives a lease
  jobs_.NoteRead(job->id);
  txn.Audit("client_joined", {{"client", absl::StrCat(absl::Hex(hello.client.value()))},
                              {"iteration", absl::StrCat(iteration->id.value())},
                              {"restored", hello.state.has_value() ? "yes" : "no"}});
  txn.Settle(iteration->id, std::move(decision));
  if (welcomed && iteration->record.readers[*before].status == protocol::ReaderStatus::kLeft) {
    return ForgetLease(key);  // the client already knows that it has left
  }
  if (txn.GetContext(iteration->id).num_ended > 0) txn.Send(peer, ReportAtOnce{});
  placer_.Balance(txn, iteration->id);  // partitions may have waited for this client
  if (peer->consumer >= 0) consumers_.Joined(txn, peer);
}

}  // namespace penstock::control
