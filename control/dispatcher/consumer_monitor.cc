// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/consumer_monitor.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/monitoring/counters.h"
#include "control/dispatcher/transaction.h"

namespace penstock::control {
namespace {

// Returns the silence after which a consumer is suspected. It is shorter than two heartbeat
// intervals, so with the default interval a dead consumer is noticed within two seconds. If the
// interval is shorter than the default, the silence is the same as for the default, because
// messages may be slightly late on a busy machine.
absl::Duration SuspectAfter(absl::Duration heartbeat_interval) {
  return std::max(absl::Milliseconds(1750), heartbeat_interval * 7 / 4);
}

// Returns whether other consumers wait for this reader.
bool IsWaitedFor(const IterationState& iteration, const protocol::ReaderRecord& reader) {
  return iteration.record.coordinated() && reader.consumer >= 0 && reader.reads() &&
         !iteration.record.closed;
}

}  // namespace

void ConsumerMonitor::Suspect(Transaction& txn, const SessionKey& key,
                              const Suspicions::Cause& cause, absl::Duration bound) {
  const IterationState* iteration = state_.FindIteration(key.first);
  if (iteration == nullptr || !state_.GoesOn(*iteration)) return;
  const auto found = iteration->record.FindReader(key.second);
  if (!found || !IsWaitedFor(*iteration, iteration->record.readers[*found])) return;
  const int64_t consumer = iteration->record.readers[*found].consumer;
  const absl::Time now = options_.now();
  const absl::Duration silent = liveness_.SilenceOf(key, now);
  if (silent < bound) return;
  if (!suspicions_.Suspect(key.first, consumer, now - silent, cause)) return;
  txn.Log("consumer_suspected", {{"job", state_.jobs.at(iteration->job).name},
                                 {"consumer", absl::StrCat(consumer)},
                                 {"silent_for", absl::FormatDuration(silent)},
                                 {"why", cause.text}});
  NotifyLost(txn, key.first);
}

void ConsumerMonitor::SuspectSilent(Transaction& txn, absl::Time now) {
  const absl::Duration bound = SuspectAfter(options_.heartbeat_interval);
  for (const SessionKey& key : liveness_.SilentClients(bound, now)) {
    // A heartbeat may renew the lease meanwhile, without the core's lock.
    Suspect(txn, key, {absl::StrCat("silent for ", absl::FormatDuration(bound))}, bound);
  }
  const auto is_over = [this](IterationId id) {
    const IterationState* iteration = state_.FindIteration(id);
    return iteration == nullptr || !state_.GoesOn(*iteration) || iteration->record.closed;
  };
  for (IterationId id : audit_.Iterations()) {
    if (is_over(id)) audit_.Forget(id);
  }
  for (IterationId id : suspicions_.Iterations()) {
    if (!is_over(id)) continue;
    suspicions_.Forget(id);
    CountLost();
  }
}

void ConsumerMonitor::DeclareDead(Transaction& txn, const SessionKey& key, absl::Time heard) {
  const IterationState& iteration = state_.iterations.at(key.first);
  const auto found = iteration.record.FindReader(key.second);
  if (!found || !IsWaitedFor(iteration, iteration.record.readers[*found])) return;
  const int64_t consumer = iteration.record.readers[*found].consumer;
  if (!suspicions_.DeclareDead(key.first, consumer, heard)) return;
  txn.Log("consumer_dead", {{"job", state_.jobs.at(iteration.job).name},
                            {"consumer", absl::StrCat(consumer)},
                            {"silent_for", absl::FormatDuration(options_.now() - heard)}});
  NotifyLost(txn, key.first);
}

void ConsumerMonitor::Heard(Transaction& txn, const ClientPeer& peer) {
  if (!suspicions_.Returns(peer.iteration, peer.consumer)) return;
  const IterationState& iteration = state_.iterations.at(peer.iteration);
  txn.Log("consumer_back",
          {{"job", state_.jobs.at(iteration.job).name}, {"consumer", absl::StrCat(peer.consumer)}});
  NotifyLost(txn, peer.iteration);
}

void ConsumerMonitor::Joined(Transaction& txn, const std::shared_ptr<ClientPeer>& peer) {
  audit_.Forget(peer->iteration);
  Heard(txn, *peer);
  // Sends the list even if it is empty, because the client may still have an older list.
  txn.Send(peer, suspicions_.Of(peer->iteration, options_.now()));
}

void ConsumerMonitor::NotifyLost(Transaction& txn, IterationId iteration) {
  txn.SendToSessions(iteration, suspicions_.Of(iteration, options_.now()));
  CountLost();
}

void ConsumerMonitor::CountLost() {
  SetLostConsumers(suspicions_.Count(/*dead=*/false), suspicions_.Count(/*dead=*/true));
}

std::string ConsumerMonitor::AuditSteps(const ClientPeer& peer,
                                        const std::vector<StepMark>& marks) {
  const protocol::IterationRecord& record = state_.iterations.at(peer.iteration).record;
  const protocol::Ends& ends = record.rounds.ends;
  const int64_t remainders_begin = ends.empty()
                                       ? std::numeric_limits<int64_t>::max()
                                       : protocol::WholeRounds(ends, record.rounds.consumers);
  const int64_t before = audit_.compared();
  std::optional<std::string> found =
      audit_.Hear(peer.iteration, peer.consumer, marks, remainders_begin);
  CountStepsCompared(audit_.compared() - before);
  return std::move(found).value_or("");
}

void ConsumerMonitor::EndTornReading(Transaction& txn, IterationId id, const std::string& torn) {
  const IterationState* iteration = state_.FindIteration(id);
  if (iteration == nullptr) return;
  const std::string& job = state_.jobs.at(iteration->job).name;
  txn.Log("step_torn", {{"job", job}, {"what", torn}});
  const absl::Status reason = absl::DataLossError(
      absl::StrCat("job ", job, ": ", torn,
                   "; the consumers no longer train on the same rows: restore all of them from "
                   "states of one earlier step, and report this"));
  for (const auto& peer : shared_.SessionsOf(id)) txn.Close(peer, reason);
  audit_.Forget(id);
}

}  // namespace penstock::control
