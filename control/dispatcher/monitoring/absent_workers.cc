// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/monitoring/absent_workers.h"

#include <algorithm>

namespace penstock::control {
namespace {

constexpr absl::Duration kFirstPause = absl::Milliseconds(100);
constexpr absl::Duration kLongestPause = absl::Seconds(5);

}  // namespace

void AbsentWorkers::Add(WorkerId worker, absl::Time now) {
  if (checks_.try_emplace(worker, Check{now, kFirstPause}).second) by_time_.insert({now, worker});
}

void AbsentWorkers::Remove(WorkerId worker) {
  const auto found = checks_.find(worker);
  if (found == checks_.end()) return;
  by_time_.erase({found->second.at, worker});
  checks_.erase(found);
}

std::vector<WorkerId> AbsentWorkers::TakeDue(absl::Time now, size_t most) {
  std::vector<WorkerId> due;
  for (const auto& [at, worker] : by_time_) {
    if (at > now || due.size() == most) break;
    due.push_back(worker);
  }
  for (const WorkerId worker : due) {
    Check& check = checks_.at(worker);
    by_time_.erase({check.at, worker});
    check.at = now + check.pause;
    check.pause = std::min(2 * check.pause, kLongestPause);
    by_time_.insert({check.at, worker});
  }
  return due;
}

}  // namespace penstock::control
