// SPDX-License-Identifier: Apache-2.0
// The workers that may get partitions. Kept in step with the state and the connections: an update
// looks only at workers that have changed. The core's lock guards it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "control/policy/placing.h"
#include "control/state/change_log.h"
#include "control/state/state.h"

namespace penstock::control {

class UsableWorkers {
 public:
  // Where the data come from. All must outlive this object.
  struct Sources {
    const State& state;
    const ChangeLog<WorkerId>& records;      // changes of `state.workers`
    const ChangeLog<WorkerId>& connections;  // changes of what is_connected() returns
    std::function<bool(WorkerId)> is_connected;
  };
  explicit UsableWorkers(Sources sources) : sources_(std::move(sources)) {}

  // Brings the list up to date. `reserved`: the workers that are not usable because a partition has
  // them for itself, ascending.
  void Update(std::vector<WorkerId> reserved);

  // The workers that are connected, not draining and not reserved, ascending by id. Valid until the
  // next update that changes them.
  absl::Span<const UsableWorker> all() const { return workers_; }
  const UsableWorker* Find(WorkerId worker) const;  // null: not usable
  const Capacity& capacity() const { return capacity_; }
  int64_t least_permits() const;  // of a worker; a high number if there is no worker
  // Whether TargetWorkers::kAuto means fewer than all workers.
  bool some_colocated() const { return colocated_ > 0; }
  // Rises with each update that had anything to look at. 0: never updated.
  uint64_t version() const { return version_; }
  // The workers whose entries came, went or changed.
  const ChangeLog<WorkerId>& changes() const { return changes_; }

  // Compares the lists and what is kept about them.
  friend bool operator==(const UsableWorkers& a, const UsableWorkers& b) {
    return a.workers_ == b.workers_ && a.capacity_ == b.capacity_ && a.permits_ == b.permits_ &&
           a.colocated_ == b.colocated_;
  }
  // Returns what the list must be, computed from the sources alone.
  UsableWorkers Computed() const;

 private:
  std::vector<UsableWorker>::const_iterator At(WorkerId worker) const;
  void Check(WorkerId worker);  // whether and how it is usable now
  void Count(const UsableWorker& worker, int64_t more);

  Sources sources_;
  uint64_t records_seen_ = 0;
  uint64_t connections_seen_ = 0;
  std::vector<WorkerId> reserved_;
  std::vector<UsableWorker> workers_;
  Capacity capacity_;
  std::map<int64_t, int64_t> permits_;  // the number of workers, by number of permits
  int64_t colocated_ = 0;
  uint64_t version_ = 0;
  ChangeLog<WorkerId> changes_;
};

}  // namespace penstock::control
