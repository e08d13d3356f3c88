// SPDX-License-Identifier: Apache-2.0
// What the parts of the iteration coordinator share: the builder of decisions, and what several of
// them read from a record. For iteration_coordinator.cc and its neighbours alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "control/protocol/iteration_coordinator.h"
#include "control/protocol/positions.h"

namespace penstock::protocol {

inline PartitionId PartitionAt(size_t position) {
  return PartitionId(position + 1);
}

// Builds the decision on one event: its changes and messages.
class DecisionBuilder {
 public:
  DecisionBuilder(const IterationRecord& record, IterationContext& context)
      : record_(record), context_(context) {}

  template <class Change>
  void AddChange(Change change) {
    decision_.changes.push_back(std::move(change));
  }
  template <class What>
  void Emit(What message) {
    decision_.messages.push_back(std::move(message));
  }
  Decision Build() && { return std::move(decision_); }

  // The number of `partition` after this decision.
  Placement placement(size_t partition) const;

  // Rule 1. Readers other than `welcomed`, who learns the number from its
  // Welcome, are fenced.
  void Raise(size_t partition, ClientId welcomed = {});
  // Rule 25. The fence asks for what was not delivered, too.
  void RaiseForOthers(size_t partition);
  // Those that are being collected need no new number: nothing was assigned
  // under this one, in this life of the dispatcher.
  void RaiseAssigned(ClientId welcomed = {});
  void Reopen(ClientId welcomed = {});

  // Sends the fence again.
  void EmitFence(size_t partition, size_t reader);
  void EmitWelcome(ClientId client, Incarnation incarnation);

  // The reader at this position starts with nothing but what it committed, under the
  // placements it is welcomed with.
  void ResetReader(size_t reader, int64_t consumer);

  // Workers that have a partition serve one reader more.
  void AddToWorkers(Reader reader);

 private:
  void RaiseAndFence(size_t partition, ClientId welcomed);

  const IterationRecord& record_;
  IterationContext& context_;
  Decision decision_;
  absl::InlinedVector<bool, 2> raised_;
};

// The active reader of that name and process.
std::optional<size_t> FindActiveReader(const IterationRecord& record, ClientId client,
                                       Incarnation incarnation);
// Somebody other than the reader at `except`; none if that is past the last.
bool SomebodyReads(const IterationRecord& record, size_t except);
// In the history of a reader if nobody else dies: delivered, committed, handed on, or had by one
// told the end.
IndexSet ClaimedOf(const IterationRecord& record, const IterationContext& context,
                   size_t partition);
// Rule 3: what must not be sent again.
IndexSet SkipOf(const IterationRecord& record, const IterationContext& context, size_t partition);
// Whether all that read have said what they have under this placement.
bool AllReported(const IterationRecord& record, const IterationContext& context, size_t partition);
// How many rounds a coordinated read has, once it is closed.
int64_t RoundsOf(const IterationRecord& record);

// Consequences() for coordinated reads (rounds_coordinator.cc).
Decision AgreeOnRounds(const IterationRecord& record, IterationContext& context);

// Consequences() for ordered merges: what their readers have room for, and who is missing among
// those of order kDeterministic (order_coordinator.cc).
Decision ArrangeOrder(const IterationRecord& record, IterationContext& context);
// The index below which a partition of an ordered merge may send: its readers' least limit.
Index SendLimitOf(const IterationRecord& record, const IterationContext& context, size_t partition,
                  const Positions& positions);

}  // namespace penstock::protocol
