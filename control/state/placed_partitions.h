// SPDX-License-Identifier: Apache-2.0
// Finds the partitions of a worker without a search through all partitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "control/protocol/message_parts.h"
#include "control/state/change_log.h"
#include "penstock/ids.h"

namespace penstock::control {

// The partitions that have workers, by worker. A value without locks.
class PlacedPartitions {
 public:
  // REQUIRES: the partition has no worker yet.
  void Add(WorkerId worker, const PartitionKey& partition);
  // REQUIRES: the worker has the partition.
  void Remove(WorkerId worker, const PartitionKey& partition);

  int64_t count() const { return count_; }
  // Returns the number of the worker's partitions.
  int32_t CountOn(WorkerId worker) const;
  // Returns how many partitions of the iteration have workers.
  int64_t CountOf(IterationId iteration) const;
  // Returns how many workers have partitions of the iteration.
  int64_t WorkersOf(IterationId iteration) const;
  // Returns the largest number of the iteration's partitions that are on one worker.
  int64_t MostOn(IterationId iteration) const;
  // Returns the iterations of which the worker has partitions, ascending.
  std::vector<IterationId> IterationsOn(WorkerId worker) const;
  // Returns the worker's partitions of the iteration, ascending. Valid until the next change.
  absl::Span<const PartitionId> On(WorkerId worker, IterationId iteration) const;

  // The workers that got or lost a partition.
  const ChangeLog<WorkerId>& changes() const { return changes_; }

  friend bool operator==(const PlacedPartitions&, const PlacedPartitions&) = default;

 private:
  struct OfWorker {
    int32_t count = 0;
    std::map<IterationId, absl::InlinedVector<PartitionId, 4>> partitions;  // none is empty
    friend bool operator==(const OfWorker&, const OfWorker&) = default;
  };
  struct OfIteration {
    int64_t count = 0;
    // [n - 1] is the number of workers that have n of the partitions. The last number is not 0.
    std::vector<int32_t> workers;
    friend bool operator==(const OfIteration&, const OfIteration&) = default;
  };
  // Notes that a worker has `now` of the iteration's partitions, and had one more or one fewer
  // before.
  void Recount(IterationId iteration, size_t before, size_t now);

  int64_t count_ = 0;
  absl::flat_hash_map<WorkerId, OfWorker> workers_;           // each has a partition
  absl::flat_hash_map<IterationId, OfIteration> iterations_;  // each has a placed partition
  ChangeLog<WorkerId> changes_;
};

}  // namespace penstock::control
