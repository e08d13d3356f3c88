// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/liveness.h"

#include <algorithm>

#include "control/dispatcher/transaction.h"

namespace penstock::control {

void Liveness::Begin() {
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

void Liveness::Joined(const SessionKey& key) {
  clients_.Heard(key, shared_.options.now());
  NoteHello(clients_to_come_.erase(key) > 0, shared_.options.now());
}

void Liveness::Joined(WorkerId worker) {
  workers_.Heard(worker, shared_.options.now());
  NoteHello(workers_to_come_.erase(worker) > 0, shared_.options.now());
}

void Liveness::NoteHello(bool recovered, absl::Time now) {
  if (recovered || to_come_since_ == absl::InfiniteFuture()) to_come_since_ = now;
}

void Liveness::Forget(const SessionKey& key) {
  clients_.Forget(key);
  clients_to_come_.erase(key);
}

void Liveness::Forget(WorkerId worker) {
  workers_.Forget(worker);
  workers_to_come_.erase(worker);
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
  if (now < leases_of_earlier_lives_) return {};
  return clients_.Expired(now, shared_.options.client_timeout);
}

std::vector<WorkerId> Liveness::ExpiredWorkers(absl::Time now) const {
  return workers_.Expired(now, shared_.options.worker_timeout);
}

bool Liveness::IsSpared(const SessionKey& key, absl::Time now) const {
  const auto peer = shared_.sessions.find(key);
  return (peer != shared_.sessions.end() && peer->second->arriving > 0) ||
         (clients_to_come_.contains(key) && now - to_come_since_ < shared_.options.client_timeout);
}

bool Liveness::IsSpared(WorkerId worker, absl::Time now) const {
  const auto peer = shared_.workers.find(worker);
  return (peer != shared_.workers.end() && peer->second->arriving > 0) ||
         (workers_to_come_.contains(worker) &&
          now - to_come_since_ < shared_.options.worker_timeout);
}

}  // namespace penstock::control
