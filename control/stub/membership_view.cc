// SPDX-License-Identifier: Apache-2.0
#include "control/stub/membership_view.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::control {

absl::StatusOr<std::vector<WorkerId>> MembershipView::Apply(const Membership& message) {
  const uint64_t before = std::exchange(version_, 0);
  std::set<WorkerId> altered;
  if (message.since == 0) {
    for (const auto& [id, worker] : workers_) altered.insert(id);
    workers_.clear();
    partitions_.clear();
  } else if (message.since != before) {
    return absl::AbortedError(
        absl::StrCat("the dispatcher sent what changed in the membership since version ",
                     message.since, ", but this client has version ", before));
  }
  for (const Membership::Partition& partition : message.partitions) Put(partition, altered);
  for (const Membership::Worker& worker : message.workers) {
    workers_[worker.worker].record = worker;
    altered.insert(worker.worker);
  }
  if (message.closed) TakeFromWorkers(altered);
  for (const WorkerId id : altered) {
    const auto found = workers_.find(id);
    if (found != workers_.end() && found->second.partitions == 0) workers_.erase(found);
  }
  version_ = message.version;
  num_partitions_ = message.num_partitions;
  closed_ = message.closed;
  max_bytes_in_flight_ = message.max_bytes_in_flight;
  return std::vector<WorkerId>(altered.begin(), altered.end());
}

// A closed iteration has no workers. The message does not name each partition.
void MembershipView::TakeFromWorkers(std::set<WorkerId>& altered) {
  for (auto& [id, known] : partitions_) {
    if (!known.worker) continue;
    --workers_[known.worker].partitions;
    altered.insert(known.worker);
    known.worker = {};
  }
}

void MembershipView::Put(const Membership::Partition& partition, std::set<WorkerId>& altered) {
  Membership::Partition& known = partitions_[partition.partition];
  if (known.worker) {
    --workers_[known.worker].partitions;
    altered.insert(known.worker);
  }
  if (partition.worker) {
    ++workers_[partition.worker].partitions;
    altered.insert(partition.worker);
  }
  known = partition;
}

const Membership::Worker* MembershipView::Find(WorkerId worker) const {
  const auto found = workers_.find(worker);
  return found != workers_.end() && found->second.record.has_value() ? &*found->second.record
                                                                     : nullptr;
}

Membership MembershipView::Whole() const {
  Membership whole{.version = version_,
                   .closed = closed_,
                   .max_bytes_in_flight = max_bytes_in_flight_,
                   .num_partitions = num_partitions_};
  for (const auto& [id, partition] : partitions_) whole.partitions.push_back(partition);
  for (const auto& [id, worker] : workers_) {
    if (worker.record.has_value()) whole.workers.push_back(*worker.record);
  }
  return whole;
}

}  // namespace penstock::control
