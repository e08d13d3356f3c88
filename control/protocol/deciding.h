// SPDX-License-Identifier: Apache-2.0
// What the parts of the desk share: an event as it is decided, and what several of them ask of a
// record. For iteration_desk.cc and its neighbours alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "control/protocol/iteration_desk.h"
#include "control/protocol/positions.h"

namespace penstock::protocol {

inline PartitionId PartitionAt(size_t position) {
  return PartitionId(position + 1);
}

// One event being decided: what all kinds of events are made of.
class Deciding {
 public:
  Deciding(const IterationRecord& record, Desk& desk) : record_(record), desk_(desk) {}

  template <class Change>
  void Changes(Change change) {
    decision_.changes.push_back(std::move(change));
  }
  template <class What>
  void Says(What message) {
    decision_.messages.push_back(std::move(message));
  }
  Decision Done() && { return std::move(decision_); }

  // The number of `partition` after this decision.
  Placement placement(size_t partition) const;

  // Rule 1. Readers other than `welcomed`, who learns the number from its
  // Welcome, are fenced.
  void Raise(size_t partition, ClientId welcomed = {});
  // Rule 25. The fence asks for what was not taken, too.
  void RaiseForOthers(size_t partition);
  // Those that are being collected need no new number: nothing was assigned
  // under this one, in this life of the dispatcher.
  void RaiseAssigned(ClientId welcomed = {});
  void Reopen(ClientId welcomed = {});

  // Sends the fence again.
  void AskFor(size_t partition, size_t reader);
  void SaysWelcome(ClientId client, Incarnation incarnation);

  // The reader at this position starts with nothing but what it kept, under the
  // placements it is welcomed with.
  void HearsAsNew(size_t reader, int64_t consumer);

  // Workers that have a partition serve one reader more.
  void AddToWorkers(Reader reader);

 private:
  void RaiseAndAsk(size_t partition, ClientId welcomed);

  const IterationRecord& record_;
  Desk& desk_;
  Decision decision_;
  absl::InlinedVector<bool, 2> raised_;
};

// The living reader of that name and process.
std::optional<size_t> Living(const IterationRecord& record, ClientId client,
                             Incarnation incarnation);
// Somebody other than the reader at `except`; none if that is past the last.
bool SomebodyReads(const IterationRecord& record, size_t except);
// In the history of a reader if nobody dies any more: taken, kept, handed on, or had by one told
// the end.
IndexSet ClaimedOf(const IterationRecord& record, const Desk& desk, size_t partition);
// Rule 3: what must not be sent again.
IndexSet SkipOf(const IterationRecord& record, const Desk& desk, size_t partition);
// Whether all that read have said what they have under this placement.
bool AllHeard(const IterationRecord& record, const Desk& desk, size_t partition);
// How many rounds a coordinated read has, once it is closed.
int64_t RoundsOf(const IterationRecord& record);

// Consequences() for coordinated reads (rounds_desk.cc).
Decision AgreeOnRounds(const IterationRecord& record, Desk& desk);

// Consequences() for ordered merges: what their readers have room for, and who is missing among
// those of order kDeterministic (order_desk.cc).
Decision ArrangeOrder(const IterationRecord& record, Desk& desk);
// So far, in indices, may a partition of an ordered merge send, in the room of all that read it.
Index AheadOf(const IterationRecord& record, const Desk& desk, size_t partition,
              const Positions& positions);

}  // namespace penstock::protocol
