// SPDX-License-Identifier: Apache-2.0
// The partitions and workers of an iteration as one of its clients knows them: the whole Membership
// that follows each Welcome, and the changes after it. The owner guards it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/receiver.h"
#include "penstock/ids.h"

namespace penstock::control {

class MembershipView {
 public:
  // Applies a message. Returns the workers that got or lost a partition, or whose record was sent,
  // in ascending order. Aborted if the message is a change since a version that this view does not
  // have. Then only a whole Membership is accepted.
  absl::StatusOr<std::vector<WorkerId>> Apply(const Membership& message);
  // Accepts only a whole Membership next. Call this when a stream begins. The view stays as it is
  // until then.
  void ExpectWhole() { version_ = 0; }

  // Returns whether the worker has a partition.
  bool IsPlaced(WorkerId worker) const { return workers_.contains(worker); }
  // Returns the partition's worker; none if it has none or was not named.
  WorkerId WorkerOf(PartitionId partition) const {
    const auto found = partitions_.find(partition);
    return found == partitions_.end() ? WorkerId() : found->second.worker;
  }
  // Returns whether this client may forget that a worker may not know of elements of the partition
  // that the client received under `placement`.
  bool MayForgetReceives(PartitionId partition, Placement placement) const {
    const auto found = partitions_.find(partition);
    if (found == partitions_.end()) return false;
    const Membership::Partition& its = found->second;
    return protocol::MayForgetReceives(placement, {its.placement, static_cast<bool>(its.worker)});
  }
  // Returns the record of a worker that has a partition; null if it has none, or if the dispatcher
  // did not send the record.
  const Membership::Worker* Find(WorkerId worker) const;
  // Returns whether elements arrive, will arrive, or need not arrive any more.
  bool served() const { return closed_ || !workers_.empty(); }
  // Returns the whole Membership to which the messages so far amount.
  Membership Whole() const;

 private:
  struct Worker {
    std::optional<Membership::Worker> record;
    int64_t partitions = 0;
  };

  // Takes all partitions from their workers, and adds these to `altered`.
  void TakeFromWorkers(std::set<WorkerId>& altered);
  // Replaces the entry of a partition, and adds its old and its new worker to `altered`.
  void Put(const Membership::Partition& partition, std::set<WorkerId>& altered);

  uint64_t version_ = 0;  // 0: a whole Membership must come next
  uint64_t num_partitions_ = 0;
  std::map<PartitionId, Membership::Partition> partitions_;  // that were named
  std::map<WorkerId, Worker> workers_;                       // that have a partition
  bool closed_ = false;
  int64_t max_bytes_in_flight_ = 0;
};

}  // namespace penstock::control
