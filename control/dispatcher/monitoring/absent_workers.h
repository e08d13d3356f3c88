// SPDX-License-Identifier: Apache-2.0
// The workers that are not connected, and when to check next whether their processes still listen.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "penstock/ids.h"

namespace penstock::control {

// The caller synchronizes. Each method takes time logarithmic in the number of absent workers.
class AbsentWorkers {
 public:
  // The worker is due for a check at once. Does nothing if it is absent already.
  void Add(WorkerId worker, absl::Time now);
  void Remove(WorkerId worker);
  // Returns at most `most` workers that are due for a check, the longest due first. Each is due
  // again after a pause, which grows from 0.1 s to 5 s: a process that dies closes its port soon
  // after its streams, and a fleet that comes back needs its time for other things.
  std::vector<WorkerId> TakeDue(absl::Time now, size_t most);

 private:
  struct Check {
    absl::Time at;
    absl::Duration pause;  // before the one that follows
  };

  std::map<WorkerId, Check> checks_;
  std::set<std::pair<absl::Time, WorkerId>> by_time_;  // of the same checks
};

}  // namespace penstock::control
