// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/liveness.h"

#include <algorithm>

#include "control/dispatcher/transaction.h"

namespace penstock::control {
namespace {

// More silent workers than both are many: this number, and this part of all.
constexpr size_t kManyWorkers = 32;
constexpr size_t kPartOfWorkers = 20;

}  // namespace

void Liveness::Begin() {
  MutexLock lock(mu_);
  const absl::Time now = shared_.options.now();
  absl::Duration longest;
  for (const BegunLife& life : shared_.state.lives) longest = std::max(longest, life.lease);
  leases_of_earlier_lives_ = now + longest;
  for (const auto& [id, worker] : shared_.state.workers) {
    workers_.Heard(id, now);
    workers_to_come_.insert(id);
  }
  for (const auto& [id, iteration] : shared_.state.iterations) {
    if (iteration.record.finished || !shared_.state.GoesOn(iteration)) continue;
    for (const protocol::ReaderRecord& reader : iteration.record.readers) {
      if (reader.status == protocol::ReaderStatus::kActive) {
        clients_.Heard({id, reader.client}, now);
        clients_to_come_.insert({id, reader.client});
      }
    }
  }
}

// The clock is read under the lock, because the times that Leases gets must not decrease.
void Liveness::Joined(const SessionKey& key, uint64_t stream) {
  MutexLock lock(mu_);
  const absl::Time now = shared_.options.now();
  clients_.Heard(key, now);
  streams_[key] = stream;
  NoteHello(clients_to_come_.erase(key) > 0, now);
}

void Liveness::Joined(WorkerId worker) {
  MutexLock lock(mu_);
  const absl::Time now = shared_.options.now();
  workers_.Heard(worker, now);
  NoteHello(workers_to_come_.erase(worker) > 0, now);
}

void Liveness::Heard(const SessionKey& key) {
  MutexLock lock(mu_);
  clients_.Heard(key, shared_.options.now());
}

void Liveness::Heard(WorkerId worker) {
  MutexLock lock(mu_);
  workers_.Heard(worker, shared_.options.now());
}

std::optional<Liveness::Renewal> Liveness::OnHeartbeat(HeartbeatSession& session,
                                                       uint64_t counter) {
  absl::Time now;
  {
    MutexLock lock(mu_);
    const auto stream = streams_.find(session.key);
    if (stream == streams_.end() || stream->second != session.stream) return std::nullopt;
    now = shared_.options.now();
    clients_.Heard(session.key, now);
  }
  HeartbeatSession::Beat& waiting = session.waiting;
  if (waiting.counter != 0 && shared_.durable > waiting.last_record) {
    session.renewed = waiting.counter;
    waiting = {};
  }
  if (waiting.counter == 0) waiting = {counter, shared_.sequence, now};
  const CoreOptions& options = shared_.options;
  // The oldest heartbeat that waits for a record must not wait for long.
  const bool due = now + options.heartbeat_interval - waiting.since >= options.client_timeout / 8;
  return Renewal{session.renewed, due};
}

void Liveness::OnStreamOver(const SessionKey& key, uint64_t stream) {
  MutexLock lock(mu_);
  const auto found = streams_.find(key);
  if (found != streams_.end() && found->second == stream) streams_.erase(found);
}

void Liveness::NoteHello(bool recovered, absl::Time now) {
  if (recovered || to_come_since_ == absl::InfiniteFuture()) to_come_since_ = now;
}

void Liveness::Forget(const SessionKey& key) {
  MutexLock lock(mu_);
  clients_.Forget(key);
  streams_.erase(key);
  clients_to_come_.erase(key);
}

void Liveness::Forget(WorkerId worker) {
  MutexLock lock(mu_);
  workers_.Forget(worker);
  workers_to_come_.erase(worker);
}

bool Liveness::TakeExpired(const SessionKey& key, absl::Time now) {
  MutexLock lock(mu_);
  if (clients_.SilentFor(key, now) < shared_.options.client_timeout) return false;
  streams_.erase(key);
  return true;
}

absl::Duration Liveness::SilenceOf(const SessionKey& key, absl::Time now) const {
  MutexLock lock(mu_);
  return clients_.SilentFor(key, now);
}

absl::Duration Liveness::SilenceOf(WorkerId worker, absl::Time now) const {
  MutexLock lock(mu_);
  return workers_.SilentFor(worker, now);
}

std::vector<SessionKey> Liveness::SilentClients(absl::Duration bound, absl::Time now) const {
  MutexLock lock(mu_);
  return clients_.Expired(now, bound);
}

// If the time between two sweeps is longer than this, the dispatcher itself was stalled. The bound
// is shorter than the timeouts after which peers are declared dead, unless a timeout is 500 ms or
// less.
absl::Duration Liveness::Stall() const {
  const CoreOptions& options = shared_.options;
  const absl::Duration timeout = std::min(options.worker_timeout, options.client_timeout);
  return std::min(options.stall, std::max(timeout / 2, absl::Milliseconds(500)));
}

bool Liveness::NoteSweep(Transaction& txn, uint64_t idles, absl::Time now) {
  MutexLock lock(mu_);
  const bool stalled = last_sweep_ != absl::InfinitePast() && now - last_sweep_ > Stall();
  if (stalled) txn.Log("stalled", {{"for", absl::FormatDuration(now - last_sweep_)}});
  last_sweep_ = now;
  if (idles != idles_ || idle_at_ == absl::InfinitePast()) {
    idles_ = idles;
    idle_at_ = now;
  }
  const bool overloaded = now - idle_at_ > Stall();
  if (overloaded && !overloaded_)
    txn.Log("overloaded", {{"for", absl::FormatDuration(now - idle_at_)}});
  overloaded_ = overloaded;
  if (stalled || overloaded) {
    clients_.HolderStalled(now);
    workers_.HolderStalled(now);
  }
  return stalled;
}

std::vector<SessionKey> Liveness::ExpiredClients(absl::Time now) const {
  MutexLock lock(mu_);
  if (now < leases_of_earlier_lives_) return {};
  return clients_.Expired(now, shared_.options.client_timeout);
}

std::vector<WorkerId> Liveness::ExpiredWorkers(absl::Time now) const {
  MutexLock lock(mu_);
  const absl::Duration timeout = WorkerTimes().timeout;
  // Workers that fall silent together expire at different times, since their last heartbeats came
  // at different times. Heartbeats are a quarter of the timeout apart at most, unless the fleet
  // has just become small, so these workers have missed one at least.
  const size_t silent = workers_.Expired(now, timeout / 2).size();
  const size_t many = std::max(kManyWorkers, workers_.size() / kPartOfWorkers);
  return workers_.Expired(now, silent > many ? 2 * timeout : timeout);
}

bool Liveness::IsSpared(const SessionKey& key, absl::Time now) const {
  MutexLock lock(mu_);
  const auto peer = shared_.sessions.find(key);
  return (peer != shared_.sessions.end() && peer->second->arriving > 0) ||
         (clients_to_come_.contains(key) && now - to_come_since_ < shared_.options.client_timeout);
}

bool Liveness::IsSpared(WorkerId worker, absl::Time now) const {
  MutexLock lock(mu_);
  const auto peer = shared_.workers.find(worker);
  return (peer != shared_.workers.end() && peer->second->arriving > 0) ||
         (workers_to_come_.contains(worker) && now - to_come_since_ < WorkerTimes().timeout);
}

HeartbeatTimes Liveness::WorkerTimes() const {
  return HeartbeatTimesOf(shared_.state.workers.size(),
                          {shared_.options.heartbeat_interval, shared_.options.worker_timeout});
}

}  // namespace penstock::control
