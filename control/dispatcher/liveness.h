// SPDX-License-Identifier: Apache-2.0
// Finds clients and workers that have been silent for too long, and decides which heartbeats renew
// a client's lease. Its lock is not the core's, so that no heartbeat waits for the core's lock
// (docs/threads.md). Its one reason to change: the rule by which a silent peer counts as dead.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "control/dispatcher/shared_state.h"
#include "control/policy/heartbeats.h"
#include "control/policy/leases.h"
#include "control/sync/mutex.h"

namespace penstock::control {

// Thread-safe.
class Liveness {
 public:
  explicit Liveness(const SharedState& shared) : shared_(shared) {}
  // Restarts all leases after a recovery.
  void Begin();

  // Called when the hello of the peer was accepted. From now on, only heartbeats on the stream with
  // this number renew the session's lease.
  void Joined(const SessionKey& key, uint64_t stream);
  void Joined(WorkerId worker);
  // Called for each message other than a client's heartbeat.
  void Heard(const SessionKey& key);
  void Heard(WorkerId worker);
  struct Renewal {
    uint64_t counter = 0;  // of the last heartbeat that renewed the lease, for the answer
    bool due = false;      // the answer must wait for a new record
  };
  // Renews the lease of the session. Returns nullopt if the heartbeat must not be answered: the
  // session has no lease, because it is over or was declared dead, or has a newer stream.
  std::optional<Renewal> OnHeartbeat(HeartbeatSession& session, uint64_t counter);
  // Heartbeats on this stream no longer renew the lease, which runs on.
  void OnStreamOver(const SessionKey& key, uint64_t stream);
  void Forget(const SessionKey& key);
  void Forget(WorkerId worker);
  // Returns false if the client's lease has been renewed since ExpiredClients(). Otherwise no
  // heartbeat renews it from now on, and the caller forgets the client.
  bool TakeExpired(const SessionKey& key, absl::Time now);

  // Restarts all leases if the dispatcher itself was stalled or is overloaded. Returns whether it
  // was stalled. `idles`: how often the dispatcher has had no event to handle.
  bool NoteSweep(Transaction& txn, uint64_t idles, absl::Time now);

  // Return zero for an unknown peer.
  absl::Duration SilenceOf(const SessionKey& key, absl::Time now) const;
  absl::Duration SilenceOf(WorkerId worker, absl::Time now) const;
  std::vector<SessionKey> SilentClients(absl::Duration bound, absl::Time now) const;
  // Return the peers whose lease has expired. They are returned until Forget() is called for them.
  // If a large part of all workers is silent at once, the network or this process is late, rather
  // than that they died, and nobody could take over their partitions: their leases are twice as
  // long.
  std::vector<SessionKey> ExpiredClients(absl::Time now) const;
  // REQUIRES: the core's lock is held.
  std::vector<WorkerId> ExpiredWorkers(absl::Time now) const;
  // Return whether a peer whose lease has expired is spared, because a message from it waits to be
  // handled, or because it may not yet have said its first hello since the recovery. REQUIRES: the
  // core's lock is held.
  bool IsSpared(const SessionKey& key, absl::Time now) const;
  bool IsSpared(WorkerId worker, absl::Time now) const;
  // Returns the times of heartbeats and silence that apply to workers now. All registered workers
  // count: after a restart, those that are back first leave the dispatcher time for the others.
  // REQUIRES: the core's lock is held.
  HeartbeatTimes WorkerTimes() const;

 private:
  absl::Duration Stall() const;
  // `recovered`: this is the first hello in this life from a process that the journal names.
  void NoteHello(bool recovered, absl::Time now) REQUIRES(mu_);

  const SharedState& shared_;

  mutable Mutex mu_;
  Leases<SessionKey> clients_ GUARDED_BY(mu_);
  Leases<WorkerId> workers_ GUARDED_BY(mu_);
  std::map<SessionKey, uint64_t> streams_ GUARDED_BY(mu_);  // whose heartbeats renew the lease
  absl::Time last_sweep_ GUARDED_BY(mu_) = absl::InfinitePast();
  uint64_t idles_ GUARDED_BY(mu_) = 0;  // at the last sweep
  absl::Time idle_at_ GUARDED_BY(mu_) = absl::InfinitePast();
  bool overloaded_ GUARDED_BY(mu_) = false;
  // Workers and clients that the journal names and that have not said hello yet. If all of them
  // connect at once, it takes some time until each has said hello. Their leases therefore begin at
  // the first hello from any peer, and begin again at each hello from a peer in these sets.
  std::set<WorkerId> workers_to_come_ GUARDED_BY(mu_);
  std::set<SessionKey> clients_to_come_ GUARDED_BY(mu_);
  absl::Time to_come_since_ GUARDED_BY(mu_) = absl::InfiniteFuture();
  // Until this time, clients may rely on a lease from an earlier life.
  absl::Time leases_of_earlier_lives_ GUARDED_BY(mu_) = absl::InfinitePast();
};

}  // namespace penstock::control
