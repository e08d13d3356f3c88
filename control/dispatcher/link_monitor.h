// SPDX-License-Identifier: Apache-2.0
// Keeps track of the links between readers and workers, and finds workers that a reader cannot
// reach. It has a lock of its own, so that a heartbeat does not wait for the core's lock
// (docs/threads.md). Its one reason to change: the rule by which a worker counts as unreachable.
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "control/dispatcher/liveness.h"
#include "control/dispatcher/monitoring/links.h"
#include "control/dispatcher/shared_state.h"
#include "control/sync/mutex.h"

namespace penstock::control {

class PartitionPlacer;

// Thread-safe.
class LinkMonitor {
 public:
  LinkMonitor(const SharedState& shared, const Liveness& liveness)
      : shared_(shared), liveness_(liveness) {}

  // As in Links. Heartbeats of a session that has not begun, or is forgotten, change nothing, and
  // Heard() returns false.
  void Begin(const SessionKey& key, Incarnation incarnation, uint64_t stream);
  bool Heard(const SessionKey& key, uint64_t stream, ClientHeartbeat& heartbeat, absl::Time now);
  void Forget(const SessionKey& key);
  void Forget(IterationId iteration);
  // Called after a stall of the dispatcher. The time for which a link has been down is then counted
  // from `now`.
  void OnStall(absl::Time now);

  std::vector<LinkStatus> Of(const SessionKey& key) const;
  size_t NumOf(const SessionKey& key) const;
  // Returns the workers that partitions of the iteration avoid because a reader cannot reach them.
  std::set<WorkerId> Unreached(IterationId iteration) const;

  // Rises with each change of what Unreached() returns.
  uint64_t changes() const;

  // Handles readers that have been unable to reach a worker for unreached_timeout. If the reader
  // reaches other workers, the worker's partitions are placed on another worker. Otherwise, if
  // there are other readers, the partitions are placed again so that these readers get the elements
  // in doubt. REQUIRES: the core's lock is held, as it is in each transaction.
  void MoveFromUnreached(Transaction& txn, PartitionPlacer& placer, absl::Time now);

 private:
  using Link = std::tuple<IterationId, ClientId, WorkerId>;
  bool ReachesOthers(const SessionKey& key) const;
  // Returns the links that count as down for unreached_timeout and have not caused a move yet.
  std::vector<std::pair<Link, absl::Time>> TakeLongDown(absl::Time now);
  // Notes that partitions are placed again because of the link. Returns false if the link is no
  // longer down.
  bool NoteUnreached(const Link& link, bool avoids);

  const SharedState& shared_;
  const CoreOptions& options_ = shared_.options;
  const State& state_ = shared_.state;
  const Liveness& liveness_;

  mutable Mutex mu_;
  Links links_ GUARDED_BY(mu_);  // of clients that have a lease
  // Down according to heartbeats. The value: since when, while partitions of the iteration have
  // been on the worker.
  std::map<Link, absl::Time> down_ GUARDED_BY(mu_);
  // Links that caused partitions to be placed again. The value: whether these partitions avoid the
  // worker.
  std::map<Link, bool> unreached_ GUARDED_BY(mu_);
  uint64_t changes_ GUARDED_BY(mu_) = 0;  // of `unreached_`
};

}  // namespace penstock::control
