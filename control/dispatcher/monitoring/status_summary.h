// SPDX-License-Identifier: Apache-2.0
// The numbers of a status that need a pass over all partitions or workers. Several callers share
// one summary, and texts are made from it without the core's lock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "control/dispatcher/monitoring/element_counts.h"
#include "control/state/state.h"

namespace penstock::control {

// The numbers of an iteration that is not past.
struct IterationSummary {
  // The partitions that wait for the same cause: how many, and the numbers of the first ones.
  struct Waiting {
    int64_t count = 0;
    std::vector<PartitionId> first;
  };
  // A run of elements that no client has for good.
  struct Owed {
    PartitionId partition;
    IndexSet::Interval indices;
  };

  int64_t received = 0;
  int64_t committed = 0;
  std::vector<PartitionId> assignable;  // ascending; empty if no partition waits
  Waiting for_room;                     // assignable, but no worker has room
  Waiting for_readers;                  // not assignable yet
  std::vector<Owed> owed;               // the first runs, if the iteration is closed
  bool owes_more = false;               // than `owed`

  bool IsAssignable(PartitionId partition) const;
};

struct StatusSummary {
  absl::Time made;
  int64_t objects = 0;                                  // partitions, workers and sessions
  int64_t permits = 0;                                  // of all workers
  std::unordered_map<uint64_t, int32_t> partitions_on;  // State::PartitionsByWorker()
  absl::flat_hash_map<IterationId, IterationSummary> iterations;
};

// The number of partitions, and of runs of owed elements, that a text names one by one.
inline constexpr size_t kMostNamed = 100;

// Makes the summary. `counts`: of all iterations, as up to date as the summary shall be.
StatusSummary Summarise(const State& state,
                        const std::map<IterationId, protocol::IterationContext>& contexts,
                        const ElementCounts& counts, int64_t sessions, absl::Time now);

// Returns a text such as "partition 1 [0,7) [9,12), partition 4 [0,2)"; empty if nothing is owed.
std::string OwedText(const IterationSummary& summary);
// Returns a text such as "a worker (partition 1, 2)", by cause; empty if no partition waits.
// `room`: what the partitions of `for_room` wait for.
std::string WaitsText(const IterationSummary& summary, const std::string& room);

// The cause for which a partition waits while readers have not answered its last fence.
inline constexpr char kWaitsForReaders[] = "its readers to report their elements";

}  // namespace penstock::control
