// SPDX-License-Identifier: Apache-2.0
// Finds clients and workers that have been silent for too long. The core's lock guards it. Its one
// reason to change: the rule by which a silent peer counts as dead.
#pragma once

#include <set>

#include "control/dispatcher/shared_state.h"
#include "control/policy/leases.h"

namespace penstock::control {

class Liveness {
 public:
  explicit Liveness(const SharedState& shared) : shared_(shared) {}
  // Restarts all leases after a recovery.
  void Begin();

  void Joined(const SessionKey& key);  // its hello was accepted
  void Joined(WorkerId worker);
  void Heard(const SessionKey& key, absl::Time now) { clients_.Heard(key, now); }
  void Heard(WorkerId worker, absl::Time now) { workers_.Heard(worker, now); }
  void Forget(const SessionKey& key);
  void Forget(WorkerId worker);

  // Restarts all leases if the dispatcher itself was stalled or is overloaded. Returns whether it
  // was stalled. `idles`: how often the dispatcher has had no event to handle.
  bool NoteSweep(Transaction& txn, uint64_t idles, absl::Time now);

  // Return zero for an unknown peer.
  absl::Duration SilenceOf(const SessionKey& key, absl::Time now) const {
    return clients_.SilentFor(key, now);
  }
  absl::Duration SilenceOf(WorkerId worker, absl::Time now) const {
    return workers_.SilentFor(worker, now);
  }
  std::vector<SessionKey> SilentClients(absl::Duration bound, absl::Time now) const {
    return clients_.Expired(now, bound);
  }
  // Return the peers whose lease has expired. They are returned until Forget() is called for them.
  std::vector<SessionKey> ExpiredClients(absl::Time now) const;
  std::vector<WorkerId> ExpiredWorkers(absl::Time now) const;
  // Return whether a peer whose lease has expired is spared, because a message from it waits for
  // the lock, or because it may not yet have said its first hello since the recovery.
  bool IsSpared(const SessionKey& key, absl::Time now) const;
  bool IsSpared(WorkerId worker, absl::Time now) const;

 private:
  absl::Duration Stall() const;
  // `recovered`: this is the first hello in this life from a process that the journal names.
  void NoteHello(bool recovered, absl::Time now);

  const SharedState& shared_;
  Leases<SessionKey> clients_;
  Leases<WorkerId> workers_;
  absl::Time last_sweep_ = absl::InfinitePast();
  uint64_t idles_ = 0;  // at the last sweep
  absl::Time idle_at_ = absl::InfinitePast();
  bool overloaded_ = false;
  // Workers and clients that the journal names and that have not said hello yet. If all of them
  // connect at once, it takes some time until each has said hello. Their leases therefore begin at
  // the first hello from any peer, and begin again at each hello from a peer in these sets.
  std::set<WorkerId> workers_to_come_;
  std::set<SessionKey> clients_to_come_;
  absl::Time to_come_since_ = absl::InfiniteFuture();
  // Until this time, clients may rely on a lease from an earlier life.
  absl::Time leases_of_earlier_lives_ = absl::InfinitePast();
};

}  // namespace penstock::control
