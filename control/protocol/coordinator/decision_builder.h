// SPDX-License-Identifier: Apache-2.0
// Shared parts of the iteration coordinator: the builder of decisions, and functions with which
// several files query a record. Only for iteration_coordinator.cc and the files next to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "control/protocol/coordinator/iteration_coordinator.h"
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
  template <class Payload>
  void EmitTo(ClientId client, Incarnation incarnation, Payload payload) {
    Emit(ToClient<Payload>{std::move(payload), client, incarnation});
  }
  Decision Build() && { return std::move(decision_); }

  // Returns the placement of `partition` after this decision.
  Placement placement(size_t partition) const;

  // Rule 1. Raises the placement, and fences the partition's readers except `welcomed`, which gets
  // the new placement in its Welcome.
  void Raise(size_t partition, ClientId welcomed = {});
  // Rule 25. Like Raise(), but the fence also asks readers to give back their undelivered elements.
  // `readers`: those that hold such elements or wait for them, which are then readers of the
  // partition.
  void RaiseForOthers(size_t partition, const IndexSet& readers);
  // Raises the placements of the assigned partitions of which the reader at this position may have
  // elements that are not committed. A partition that is collecting answers needs no new placement,
  // because in this life of the dispatcher no worker was assigned under the present placement.
  void RaiseAssigned(size_t reader, ClientId welcomed = {});
  void Reopen(ClientId welcomed = {});

  // Sends the fence again.
  void EmitFence(size_t partition, size_t reader);
  // `partial`: the position of the reader if its Welcome names only some partitions (rule 33).
  void EmitWelcome(ClientId client, Incarnation incarnation, std::optional<size_t> partial);

  // Notifies the reader of the end, with the elements that it has then.
  void EndReader(size_t reader, ReceivedSets final);

  // Resets the context of the reader at position `reader`: the reader has only its committed
  // elements, under the placements of its Welcome.
  void ResetReader(size_t reader, int64_t consumer);

  // Tells each worker with a partition that serves all readers to serve `reader` too.
  void AddToWorkers(Reader reader);
  // Tells the partition's worker to serve the reader at this position too.
  void AddToWorker(size_t partition, size_t reader);
  // Tells each of these workers to serve `client` no longer.
  void RemoveFromWorkers(ClientId client);

 private:
  // `added`: further readers of the partition.
  void RaiseAndFence(size_t partition, ClientId welcomed, const IndexSet& added);
  // Returns whether the reader may have elements of the partition that are not committed.
  bool MayHold(size_t partition, size_t reader) const;

  const IterationRecord& record_;
  IterationContext& context_;
  Decision decision_;
  absl::InlinedVector<bool, 2> raised_;
};

// Returns whether a partition of the iteration may serve some of the readers only.
bool MayHaveAudiences(const IterationRecord& record);
// Returns the position of the active reader with this client and incarnation.
std::optional<size_t> FindActiveReader(const IterationRecord& record, ClientId client,
                                       Incarnation incarnation);
// Returns whether any reader still reads, apart from the reader at position `except`. A position
// after the last reader excludes no reader.
bool SomebodyReads(const IterationRecord& record, size_t except);
// Returns the indices that will be in a reader's history if no reader dies: indices that are
// delivered, committed, handed on, or held by a reader that was notified of the end.
// `positions`, here and below: PositionsOf(record).
IndexSet ClaimedOf(const IterationRecord& record, const IterationContext& context,
                   const Positions& positions, size_t partition);
// Rule 3: returns the indices that must not be sent again.
IndexSet SkipOf(const IterationRecord& record, const IterationContext& context,
                const Positions& positions, size_t partition);
// Returns whether a fence of the partition, which is collecting, goes to the reader.
bool IsFenced(const IterationRecord& record, const IterationContext& context, size_t partition,
              size_t reader);
// Returns whether the reader has reported all its elements of the partition, and accepts no further
// elements under an earlier placement.
bool HasReported(const IterationRecord& record, const IterationContext& context, size_t partition,
                 size_t reader);
// Returns whether all readers have done so.
bool AllReported(const IterationRecord& record, const IterationContext& context, size_t partition);
// Returns the number of rounds of a coordinated read, once it is closed; otherwise 0.
int64_t RoundsOf(const IterationRecord& record);

// The part of Consequences() for coordinated reads (rounds_coordinator.cc).
Decision AgreeOnRounds(const IterationRecord& record, IterationContext& context);

// The part of Consequences() for ordered merges (order_coordinator.cc): allows the elements for
// which readers have room, and names a missing consumer of order kDeterministic.
Decision ArrangeOrder(const IterationRecord& record, IterationContext& context);
// For order kDeterministic: returns whether each element of the consumer is committed, or held by a
// reader that was notified of the end. False until all partitions have ended, because the
// consumer's elements are not known before then.
bool HasAll(const IterationRecord& record, int64_t consumer);
// Returns the index below which a partition of an ordered merge may send: the lowest limit of its
// readers.
Index SendLimitOf(const IterationRecord& record, const IterationContext& context, size_t partition,
                  const Positions& positions);

}  // namespace penstock::protocol
