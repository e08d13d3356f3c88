// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/placing/usable_workers.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace penstock::control {

void UsableWorkers::Update(std::vector<WorkerId> reserved) {
  const auto records = sources_.records.After(records_seen_);
  const auto connections = sources_.connections.After(connections_seen_);
  const bool all = version_ == 0 || !records || !connections;
  if (!all && records->empty() && connections->empty() && reserved == reserved_) return;
  std::vector<WorkerId> changed;
  std::ranges::set_symmetric_difference(reserved, reserved_, std::back_inserter(changed));
  reserved_ = std::move(reserved);
  records_seen_ = sources_.records.count();
  connections_seen_ = sources_.connections.count();
  ++version_;
  if (all) {
    for (const UsableWorker& worker : workers_) changed.push_back(worker.id);
    for (const auto& [id, worker] : sources_.state.workers) changed.push_back(id);
  } else {
    changed.insert(changed.end(), records->begin(), records->end());
    changed.insert(changed.end(), connections->begin(), connections->end());
  }
  for (const WorkerId worker : changed) Check(worker);
}

std::vector<UsableWorker>::const_iterator UsableWorkers::At(WorkerId worker) const {
  return std::ranges::lower_bound(workers_, worker, {}, &UsableWorker::id);
}

const UsableWorker* UsableWorkers::Find(WorkerId worker) const {
  const auto at = At(worker);
  return at == workers_.end() || at->id != worker ? nullptr : &*at;
}

int64_t UsableWorkers::least_permits() const {
  return permits_.empty() ? std::numeric_limits<int64_t>::max() : permits_.begin()->first;
}

void UsableWorkers::Check(WorkerId worker) {
  const WorkerRecord* record = sources_.state.FindWorker(worker);
  const bool usable = record != nullptr && !record->draining && sources_.is_connected(worker) &&
                      !std::ranges::binary_search(reserved_, worker);
  const auto at = workers_.begin() + (At(worker) - workers_.cbegin());
  const bool is_listed = at != workers_.end() && at->id == worker;
  if (!usable && !is_listed) return;
  if (usable && is_listed && *at == UsableOf(*record)) return;
  changes_.Add(worker);
  if (is_listed) Count(*at, -1);
  if (!usable) {
    workers_.erase(at);
    return;
  }
  const UsableWorker now = UsableOf(*record);
  Count(now, 1);
  if (is_listed) {
    *at = now;
  } else {
    workers_.insert(at, now);
  }
}

void UsableWorkers::Count(const UsableWorker& worker, int64_t more) {
  capacity_.workers += more;
  capacity_.permits += more * worker.permits;
  colocated_ += worker.colocated ? more : 0;
  const auto count = permits_.try_emplace(worker.permits).first;
  count->second += more;
  if (count->second == 0) permits_.erase(count);
}

UsableWorkers UsableWorkers::Computed() const {
  UsableWorkers computed(sources_);
  computed.Update(reserved_);
  return computed;
}

}  // namespace penstock::control
