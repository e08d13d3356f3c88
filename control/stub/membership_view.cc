// SPDX-License-Identifier: Apache-2.0
#include "control/stub/membership_view.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

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
  for (const Membership::Partition& partition : message.partitions)
    RETURN_IF_ERROR(Put(partition, altered));
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
  closed_ = message.closed;
  max_bytes_in_flight_ = message.max_bytes_in_flight;
  return std::vector<WorkerId>(altered.begin(), altered.end());
}

// A closed iteration has no workers. The message does not name each partition.
void MembershipView::TakeFromWorkers(std::set<WorkerId>& altered) {
  for (Membership::Partition& known : partitions_) {
    if (!known.worker) continue;
    --workers_[known.worker].partitions;
    altered.insert(known.worker);
    known.worker = {};
  }
}

absl::Status MembershipView::Put(const Membership::Partition& partition,
                                 std::set<WorkerId>& altered) {
  const uint64_t number = partition.partition.value();
  if (number == 0 || number > partitions_.size() + 1) {
    return absl::AbortedError(absl::StrCat("the dispatcher sent ", ToString(partition.partition),
                                           " to a client that knows ", partitions_.size(),
                                           " partitions"));
  }
  if (number > partitions_.size()) partitions_.emplace_back();
  Membership::Partition& known = partitions_[number - 1];
  if (known.worker) {
    --workers_[known.worker].partitions;
    altered.insert(known.worker);
  }
  if (partition.worker) {
    ++workers_[partition.worker].partitions;
    altered.insert(partition.worker);
  }
  known = partition;
  return absl::OkStatus();
}

const Membership::Worker* MembershipView::Find(WorkerId worker) const {
  const auto found = workers_.find(worker);
  return found != workers_.end() && found->second.record.has_value() ? &*found->second.record
                                                                     : nullptr;
}

Membership MembershipView::Whole() const {
  Membership whole{.version = version_,
                   .partitions = partitions_,
                   .closed = closed_,
                   .max_bytes_in_flight = max_bytes_in_flight_};
  for (const auto& [id, worker] : workers_) {
    if (worker.record.has_value()) whole.workers.push_back(*worker.record);
  }
  return whole;
}

}  // namespace penstock::control
