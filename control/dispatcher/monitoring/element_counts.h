// SPDX-License-Identifier: Apache-2.0
// Keeps, for the status, which elements of each partition readers have. A partition begins without
// elements. After that, reports and commits add to the sets, so that they cost what they add,
// however many partitions and readers there are. If a reader may have lost elements, the partition
// is counted again over all its readers when somebody asks. Not journaled. A plain value that reads
// no clock.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/protocol/iteration_record.h"

namespace penstock::control {

// Not thread-safe. Keeps nothing about an iteration before Begin() or Count() is called for it.
class ElementCounts {
 public:
  struct Sets {
    // Committed, or reported as received or delivered. In a coordinated read and in order
    // kDeterministic, what consumers reported is counted by rows.
    IndexSet received;
    IndexSet committed;
    bool stale = true;  // must be counted again

    friend bool operator==(const Sets&, const Sets&) = default;
  };
  // The numbers of elements in all sets of an iteration.
  struct Totals {
    int64_t received = 0;
    int64_t committed = 0;

    friend bool operator==(const Totals&, const Totals&) = default;
  };

  // Called when a context was made for the iteration: no reader has reported anything to it.
  void Begin(IterationId iteration, const protocol::IterationRecord& record);
  // Counts stale partitions, until there are none or `room` is used up. `room`: the number of sets
  // and intervals that may be read; a partition that has more is counted as a whole. `context`:
  // null if there is none. Returns whether no partition is stale any more.
  bool Count(IterationId iteration, const protocol::IterationRecord& record,
             const protocol::IterationContext* context, int64_t& room);
  // Returns the sets as they were last counted, by partition. Partitions that were never counted
  // have empty sets, or are missing at the end.
  absl::Span<const Sets> Of(IterationId iteration) const;
  Totals TotalsOf(IterationId iteration) const;
  // Returns whether the sets that are not stale are those that Count() would count, and the totals
  // are the sums of all sets. For tests: reads all sets of the iteration.
  bool AreTrue(IterationId iteration, const protocol::IterationRecord& record,
               const protocol::IterationContext* context) const;

  // Called after a change was applied to the record.
  void Changed(IterationId iteration, const protocol::IterationRecord& record,
               const protocol::IterationChange& change);
  // Called after the coordinator was given a client's report. `context`: as it is then.
  void Reported(IterationId iteration, const protocol::IterationRecord& record,
                const protocol::IterationContext& context, ClientId client, Incarnation incarnation,
                const protocol::Report& report);
  // Called when the client has said that it has reported all that it has (rule 33).
  void Completed(IterationId iteration, ClientId client);
  // Called when the iteration is forgotten.
  void Forget(IterationId iteration) { iterations_.erase(iteration); }

 private:
  struct Iteration {
    std::vector<Sets> partitions;  // [0] is partition 1
    Totals totals;                 // of `partitions`
    size_t stale = 0;              // the number of stale partitions
    size_t next = 0;               // where the search for a stale partition continues
    bool has_context = false;      // when it was last counted
    // The numbers of the partitions of which the client has reported elements to the context.
    absl::flat_hash_map<ClientId, IndexSet> reported;
  };
  Iteration* Find(IterationId iteration);
  // Forgets what was counted, and makes all partitions stale.
  Iteration& Restart(IterationId iteration, const protocol::IterationRecord& record,
                     bool has_context);
  static void MakeStale(Iteration& of, PartitionId partition);
  static void MakeAllStale(Iteration& of);

  absl::flat_hash_map<IterationId, Iteration> iterations_;
};

}  // namespace penstock::control
