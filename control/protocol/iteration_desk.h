// SPDX-License-Identifier: Apache-2.0
// What the dispatcher decides about one iteration. Pure: a function takes the
// record as it is, the desk (what is known besides and need not survive), and
// what happened, and returns the changes and messages that follow. The caller
// applies all changes at once, in order, then asks for the Consequences (also
// when the decision was empty) until there are none, all under one lock; it
// journals the changes and sends the messages when they are durable. Messages to a peer that is not
// connected are dropped: what matters is said again when it presents itself or registers.
//
// Events that name an unknown partition or client, an older placement or another
// incarnation decide nothing: they come from the past.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "control/protocol/iteration_record.h"
#include "control/protocol/messages.h"
#include "control/protocol/rules.h"

namespace penstock::protocol {

struct Decision {
  absl::InlinedVector<IterationChange, 3> changes;
  std::vector<Message> messages;
  bool empty() const { return changes.empty() && messages.empty(); }
};

// What a reader said of one partition since the dispatcher started.
struct Heard {
  Placement at;  // of the newest answer or report; none: nothing yet
  IndexSet has;  // taken or landed
  // Of a shared iteration: what nobody waits for, since it is taken, or will be once the end is
  // told. Taken under KeepPolicy::kCommitted; elsewhere that is kept, and this is what is handed
  // on.
  IndexSet claimed;
  // Of an ordered merge: so far, in indices, the partition may send for this reader's sake.
  Index ahead = 0;
};

struct PartitionDesk {
  std::optional<Index> ended;             // of this placement: the number of elements
  absl::InlinedVector<Heard, 2> readers;  // parallel to the record's
  // All below is kept. Remembered, since what is kept stays kept, so that it is not
  // searched for from the beginning.
  Index kept_below = 0;
  // Of a coordinated read: its elements, once a worker came to their end (a function
  // of its splits, whatever the placement); what its worker was told.
  std::optional<Index> at_end;
  int64_t turns_allowed = 0;
  int64_t turns_sent = 0;  // that may have landed or be on their way, under any placement
  bool rest_told = false;
  bool gives_back = false;  // whoever answers for this placement is to give back what it can
};

// What is known of a consumer of a coordinated read.
struct ConsumerDesk {
  bool said = false;                // all it has, since this dispatcher or its process began
  int64_t taken = 0;                // rounds
  int64_t heard = 0;                // rounds that it knew of when it last said so
  int64_t room = 0;                 // elements that it will hold; 0: it has not said
  std::optional<RoundCursor> told;  // on its present stream: rounds before this place
};
struct RoundsDesk {
  std::vector<ConsumerDesk> consumers;  // by number
  std::optional<RoundCursor> agreed;    // rounds before this place have landed everywhere
  std::optional<RoundCursor> floor;     // rounds before this place are taken by all
  // Of turns not below the floor: the error, and whose it is.
  std::map<std::pair<PartitionId, int64_t>, std::pair<int64_t, RoundError>> errors;
  std::string waits_for;  // why nothing is agreed on; of order kDeterministic too
  bool unheard = false;   // of that order: somebody may not have heard it
  int64_t skips = 0;      // since the dispatcher started
};

// The volatile side. Kept in step with the record by the functions below, which
// are the only ones to alter it.
struct Desk {
  absl::InlinedVector<PartitionDesk, 1> partitions;
  absl::InlinedVector<bool, 2> present;  // parallel to the record's readers: has a stream
  // Parallel to them as well: said that it waits, and nothing was given back for that yet.
  absl::InlinedVector<bool, 2> waits;
  RoundsDesk rounds;
  bool ordered = false;  // a reader said what it has room for, as those of ordered merges do
  Broken broken = Broken::kNone;
};

// The desk of a dispatcher that has just started: nothing was heard, nobody is
// present. Collecting goes on under the same placements as clients present
// themselves.
Desk OpenDesk(const IterationRecord& record, Broken broken = Broken::kNone);

// --- Clients -------------------------------------------------------------------

// A client opens its stream: joins, comes back, or takes up its session from a
// state. Welcome, then fences and the end as they apply; or Refused.
Decision OnPresents(const IterationRecord& record, Desk& desk, const Presents& presents);
// Its stream ended; the session goes on.
void OnDisconnects(const IterationRecord& record, Desk& desk, ClientId client);
// An answer to a fence or a report.
Decision OnReport(const IterationRecord& record, Desk& desk, ClientId client,
                  Incarnation incarnation, const Report& report);
// Next() waits there and nothing is left to be taken; said again from time to time. Rule 25.
void OnWaits(const IterationRecord& record, Desk& desk, ClientId client, Incarnation incarnation);
// Errors that landed at a consumer; before the reports of what it has, since a round may
// be agreed on with those. InvalidArgument for those of no partition, and for more than there are
// turns ahead of all consumers.
absl::Status OnRoundErrors(const IterationRecord& record, Desk& desk, ClientId client,
                           Incarnation incarnation, absl::Span<const RoundError> errors);
// InvalidArgument where it says that it knows of rounds that it was not told of over its present
// stream, behind its first report there.
absl::Status CheckRoundsReport(const IterationRecord& record, const Desk& desk, ClientId client,
                               Incarnation incarnation, const RoundsReport& report);
// Where a consumer is, behind its reports of what it has. REQUIRES: CheckRoundsReport.
Decision OnRoundsReport(const IterationRecord& record, Desk& desk, ClientId client,
                        Incarnation incarnation, const RoundsReport& report);
// A reader of an ordered merge has room for elements below `below`.
void OnAhead(const IterationRecord& record, Desk& desk, ClientId client, Incarnation incarnation,
             PartitionId partition, Index below);
// CommitDone when the state is journaled.
Decision OnCommit(const IterationRecord& record, Desk& desk, ClientId client,
                  Incarnation incarnation, const Commit& commit);
// A clean stop: what it took is kept under KeepPolicy::kTaken, its last committed state otherwise;
// the rest goes to others, now or when no state of it can come any more. LeaveDone when journaled.
Decision OnLeave(const IterationRecord& record, Desk& desk, ClientId client,
                 Incarnation incarnation, const Leave& leave);
// Declared dead: its lease has run out (it returns no elements any more by its
// own clock) or its process is gone.
Decision OnReaderDead(const IterationRecord& record, Desk& desk, ClientId client);

// --- Workers -------------------------------------------------------------------

// It opens its stream, with the placements it has. What was sent to it and never
// arrived is placed anew; what it should not have is taken from it.
Decision OnWorkerRegisters(const IterationRecord& record, Desk& desk, WorkerId worker,
                           absl::Span<const Held> held);
// The dispatcher has begun, from a record that may be older than what the one before it did.
Decision OnDispatcherStarts(const IterationRecord& record, Desk& desk);
// Declared dead, or drains: all its partitions are placed anew.
Decision OnWorkerGone(const IterationRecord& record, Desk& desk, WorkerId worker);
// One partition is to move, for balance.
Decision OnRelieve(const IterationRecord& record, Desk& desk, PartitionId partition);
// Everything outside skip was sent and nothing is in doubt; `end` elements.
Decision OnEnded(const IterationRecord& record, Desk& desk, WorkerId worker, PartitionId partition,
                 Placement placement, Index end);
// Of a coordinated read: it has `end` elements, of which the last `end` mod C are kept
// back until it is told where they go (AllowTurns).
Decision OnAtEnd(const IterationRecord& record, Desk& desk, WorkerId worker, PartitionId partition,
                 Placement placement, Index end);
// A position that the worker's runner passed. Journaled; older ones are retired
// once a later one lies at or below the first index that is not kept.
Decision OnBookmark(const IterationRecord& record, Desk& desk, WorkerId worker,
                    PartitionId partition, Placement placement, const Bookmark& bookmark);

// --- After each of these ---------------------------------------------------------

// Closes the iteration when all is taken or handed on (of one that is not shared: has landed),
// tells the end to readers that are present, finishes it when all is kept; asks for what some hold
// and others wait for. Call after every event, also one that decided nothing, and again after
// applying, until this decides nothing.
Decision Consequences(const IterationRecord& record, Desk& desk);

// --- Placing -------------------------------------------------------------------

// One more partition (its number is the next one). Nothing once closed.
Decision OpenPartition(const IterationRecord& record, Desk& desk);
// Partitions whose answers are complete: a policy may choose a worker for them.
std::vector<PartitionId> Assignable(const IterationRecord& record, const Desk& desk);
// REQUIRES: `partition` is assignable.
Decision AssignTo(const IterationRecord& record, Desk& desk, PartitionId partition,
                  WorkerId worker);

// What is owed after closing is given up (job_gc_timeout); nothing if not closed.
Decision GiveUp(const IterationRecord& record, Desk& desk);

}  // namespace penstock::protocol
