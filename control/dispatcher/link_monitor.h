// SPDX-License-Identifier: Apache-2.0
// Keeps track of the links between readers and workers, and finds workers that a reader cannot
// reach. The core's lock guards it. Its one reason to change: the rule by which a worker counts as
// unreachable.
#pragma once

#include <set>
#include <tuple>

#include "control/dispatcher/liveness.h"
#include "control/dispatcher/monitoring/links.h"
#include "control/dispatcher/shared_state.h"

namespace penstock::control {

class PartitionPlacer;

class LinkMonitor {
 public:
  LinkMonitor(const SharedState& shared, const Liveness& liveness)
      : shared_(shared), liveness_(liveness) {}

  void Heard(const ClientPeer& peer, std::vector<LinkCounts> links, absl::Time now);
  void Forget(const SessionKey& key);
  void Forget(IterationId iteration);
  // Called after a stall of the dispatcher. The time for which a link has been down is then counted
  // from 0 again.
  void OnStall() { down_.clear(); }

  std::vector<LinkStatus> Of(const SessionKey& key) const { return links_.Of(key); }
  size_t NumOf(const SessionKey& key) const { return links_.NumOf(key); }
  // Returns the workers that partitions of the iteration avoid because a reader cannot reach them.
  std::set<WorkerId> Unreached(IterationId iteration) const;

  // Rises with each change of what Unreached() returns.
  uint64_t changes() const { return changes_; }

  // Handles readers that have been unable to reach a worker for unreached_timeout. If the reader
  // reaches other workers, the worker's partitions are placed on another worker. Otherwise, if
  // there are other readers, the partitions are placed again so that these readers get the elements
  // in doubt.
  void MoveFromUnreached(Transaction& txn, PartitionPlacer& placer, absl::Time now);

 private:
  using Link = std::tuple<IterationId, ClientId, WorkerId>;
  bool ReachesOthers(const SessionKey& key) const;

  const SharedState& shared_;
  const CoreOptions& options_ = shared_.options;
  const State& state_ = shared_.state;
  const Liveness& liveness_;
  Links links_;                      // of clients that have a lease
  std::map<Link, absl::Time> down_;  // down since this time, according to heartbeats
  // Links that caused partitions to be placed again. The value: whether these partitions avoid the
  // worker.
  std::map<Link, bool> unreached_;
  uint64_t changes_ = 0;  // of `unreached_`
};

}  // namespace penstock::control
