// SPDX-License-Identifier: Apache-2.0
// The numbers of an iteration for the status. Texts are made from them without the core's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "control/dispatcher/monitoring/element_counts.h"
#include "control/state/state.h"

namespace penstock::control {

// The partitions of an iteration that have no worker, by what they wait for.
struct WaitingPartitions {
  // The partitions that wait for the same cause: how many, and the numbers of the first ones.
  struct Some {
    int64_t count = 0;
    std::vector<PartitionId> first;
  };
  std::vector<PartitionId> assignable;  // ascending
  Some for_room;                        // assignable, but no worker has room
  Some for_readers;                     // not assignable yet

  bool IsAssignable(PartitionId partition) const;
};

// The numbers of an iteration that is not past.
struct IterationSummary {
  // A run of elements that no client has for good.
  struct Owed {
    PartitionId partition;
    IndexSet::Interval indices;
  };
  ElementCounts::Totals elements;
  std::shared_ptr<const WaitingPartitions> waiting;  // not null
  std::vector<Owed> owed;                            // the first runs, if the iteration is closed
  bool owes_more = false;                            // than `owed`
};

// Makes summaries. One takes constant time, unless partitions wait, or the iteration is closed and
// not finished: then it looks at each partition once. Not thread-safe.
class IterationSummaries {
 public:
  // `context`: null if there is none. `counts`: as up to date as the summary shall be.
  IterationSummary Of(const State& state, const IterationState& iteration,
                      const protocol::IterationContext* context, const ElementCounts& counts);
  // Forgets the iterations that `state` does not contain.
  void ForgetOld(const State& state);

 private:
  // Which partitions wait is found out again only when this number has changed.
  struct Found {
    uint64_t placing_changes = 0;  // of the context
    std::shared_ptr<const WaitingPartitions> waiting;
  };
  absl::flat_hash_map<IterationId, Found> found_;  // of iterations with a context
};

// The number of partitions, and of runs of owed elements, that a text names one by one.
inline constexpr size_t kMostNamed = 100;

// Returns a text such as "partition 1 [0,7) [9,12), partition 4 [0,2)"; empty if nothing is owed.
std::string OwedText(const IterationSummary& summary);
// Returns a text such as "a worker (partition 1, 2)", by cause; empty if no partition waits.
// `room`: what the partitions of `for_room` wait for.
std::string WaitsText(const WaitingPartitions& waiting, const std::string& room);

// The cause for which a partition waits while readers have not answered its last fence.
inline constexpr char kWaitsForReaders[] = "its readers to report their elements";

}  // namespace penstock::control
