// SPDX-License-Identifier: Apache-2.0
// What the dispatcher decides about one iteration. Pure: a function takes the
// record as it is, its context (what else is known, which need not survive), and
// what happened, and returns the changes and messages that follow. The caller
// applies all changes at once, in order, then asks for the Consequences (also
// when the decision was empty) until there are none, all under one lock; it
// journals the changes and sends the messages when they are durable. Messages to a peer that is not
// connected are dropped: what matters is sent again when it connects or registers.
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
struct AckState {
  Placement at;       // of the newest answer or report; none: nothing yet
  IndexSet reported;  // delivered or received
  // Of a shared iteration: what nobody waits for, since it is delivered, or will be once the end is
  // told. Delivered under CommitPolicy::kExplicit; otherwise that is committed, and this is handed
  // on.
  IndexSet claimed;
  // Of an ordered merge: so far, in indices, the partition may send for this reader's sake.
  Index receive_limit = 0;
};

struct PartitionContext {
  std::optional<Index> ended;                // of this placement: the number of elements
  absl::InlinedVector<AckState, 2> readers;  // parallel to the record's
  // All below is committed. Remembered, since that does not change, so that it is not
  // searched for from the beginning.
  Index committed_below = 0;
  // Of a coordinated read: its elements, once a worker came to their end (a function
  // of its splits, whatever the placement); what its worker was told.
  std::optional<Index> at_end;
  int64_t rows_allowed = 0;
  int64_t rows_sent = 0;  // received or on their way, under any placement
  bool remainder_announced = false;
  bool gives_back = false;  // whoever answers for this placement is to give back what it can
};

// What is known of a consumer of a coordinated read.
struct ConsumerContext {
  bool reported = false;                 // all it has, since this dispatcher or its process began
  int64_t delivered = 0;                 // rounds
  int64_t known = 0;                     // rounds that it knew of when it last said so
  int64_t receive_budget = 0;            // elements that it will hold; 0: it has not said
  std::optional<RoundCursor> announced;  // on its present stream: rounds before this place
};
struct RoundsContext {
  std::vector<ConsumerContext> consumers;  // by number
  std::optional<RoundCursor> agreed;       // all consumers received the rounds before this place
  std::optional<RoundCursor> floor;        // rounds before this place are delivered to all
  // Of rows not below the floor: the error, and whose it is.
  std::map<std::pair<PartitionId, int64_t>, std::pair<int64_t, RoundError>> errors;
  std::string waits_for;          // why nothing is agreed on; of order kDeterministic too
  bool resend_waits_for = false;  // of that order: somebody may not know it
  int64_t skips = 0;              // since the dispatcher started
};

// The volatile side. Updated in step with the record by the functions below, which
// are the only ones to alter it.
struct IterationContext {
  absl::InlinedVector<PartitionContext, 1> partitions;
  absl::InlinedVector<bool, 2> present;  // parallel to the record's readers: has a stream
  // Parallel to them as well: said that it waits, and nothing was given back for that yet.
  absl::InlinedVector<bool, 2> waits;
  RoundsContext rounds;
  bool ordered = false;  // a reader said what it has room for, as those of ordered merges do
  Broken broken = Broken::kNone;
};

// The context of a dispatcher that has just started: nothing was heard, nobody is
// present. Collecting goes on under the same placements as clients
// connect.
IterationContext MakeIterationContext(const IterationRecord& record, Broken broken = Broken::kNone);

// --- Clients -------------------------------------------------------------------

// A client opens its stream: joins, comes back, or takes up its session from a
// state. Welcome, then fences and the end as they apply; or Refused.
Decision OnConnect(const IterationRecord& record, IterationContext& context,
                   const Connect& connect);
// Its stream ended; the session goes on.
void OnDisconnect(const IterationRecord& record, IterationContext& context, ClientId client);
// An answer to a fence or a report.
Decision OnReport(const IterationRecord& record, IterationContext& context, ClientId client,
                  Incarnation incarnation, const Report& report);
// Next() waits there and nothing is left to be delivered; said again from time to time. Rule 25.
void OnWaits(const IterationRecord& record, IterationContext& context, ClientId client,
             Incarnation incarnation);
// Errors that a consumer received; before the reports of what it has, since a round may
// be agreed on with those. InvalidArgument for those of no partition, and for more than there are
// rows ahead of all consumers.
absl::Status OnRoundErrors(const IterationRecord& record, IterationContext& context,
                           ClientId client, Incarnation incarnation,
                           absl::Span<const RoundError> errors);
// InvalidArgument where it says that it knows of rounds that it was not told of over its present
// stream, behind its first report there.
absl::Status CheckRoundsReport(const IterationRecord& record, const IterationContext& context,
                               ClientId client, Incarnation incarnation,
                               const RoundsReport& report);
// Where a consumer is, behind its reports of what it has. REQUIRES: CheckRoundsReport.
Decision OnRoundsReport(const IterationRecord& record, IterationContext& context, ClientId client,
                        Incarnation incarnation, const RoundsReport& report);
// A reader of an ordered merge has room for elements below `below`.
void OnReceiveLimit(const IterationRecord& record, IterationContext& context, ClientId client,
                    Incarnation incarnation, PartitionId partition, Index below);
// CommitDone when the state is journaled.
Decision OnCommit(const IterationRecord& record, IterationContext& context, ClientId client,
                  Incarnation incarnation, const Commit& commit);
// A clean stop: CommitPolicy::kOnDelivery commits what was delivered, else its last state counts;
// the rest goes to others, now or when no state of it can come any more. LeaveDone when journaled.
Decision OnLeave(const IterationRecord& record, IterationContext& context, ClientId client,
                 Incarnation incarnation, const Leave& leave);
// Declared dead (kExpired): its lease has run out (it returns no elements any more by its
// own clock) or its process is gone.
Decision OnReaderExpired(const IterationRecord& record, IterationContext& context, ClientId client);

// --- Workers -------------------------------------------------------------------

// It opens its stream, with the placements it has. What was sent to it and never
// arrived is placed anew; what it should not have is unassigned.
Decision OnWorkerRegisters(const IterationRecord& record, IterationContext& context,
                           WorkerId worker, absl::Span<const HeldPlacement> held);
// The dispatcher has begun, from a record that may be older than what the one before it did.
Decision OnDispatcherStarts(const IterationRecord& record, IterationContext& context);
// Declared dead, or drains: all its partitions are placed anew.
Decision OnWorkerGone(const IterationRecord& record, IterationContext& context, WorkerId worker);
// One partition is to move, for balance.
Decision OnRelieve(const IterationRecord& record, IterationContext& context, PartitionId partition);
// Everything outside skip was sent and nothing is in doubt; `end` elements.
Decision OnEnded(const IterationRecord& record, IterationContext& context, WorkerId worker,
                 PartitionId partition, Placement placement, Index end);
// Of a coordinated read: it has `end` elements, of which the last `end` mod C are held
// back until it is told where they go (AllowRows).
Decision OnAtEnd(const IterationRecord& record, IterationContext& context, WorkerId worker,
                 PartitionId partition, Placement placement, Index end);
// A position that the worker's runner passed. Journaled; older ones are retired
// once a later one lies at or below the first index that is not committed.
Decision OnBookmark(const IterationRecord& record, IterationContext& context, WorkerId worker,
                    PartitionId partition, Placement placement, const Bookmark& bookmark);

// --- After each of these ---------------------------------------------------------

// Closes the iteration when all is delivered or handed on (of one that is not shared: received),
// tells the end to readers that are present, finishes it when all is committed; asks for what some
// hold and others wait for. Call after every event, also one that decided nothing, and again after
// applying, until this decides nothing.
Decision Consequences(const IterationRecord& record, IterationContext& context);

// --- Placing -------------------------------------------------------------------

// One more partition (its number is the next one). Nothing once closed.
Decision OpenPartition(const IterationRecord& record, IterationContext& context);
// Partitions whose answers are complete: a policy may choose a worker for them.
std::vector<PartitionId> Assignable(const IterationRecord& record, const IterationContext& context);
// REQUIRES: `partition` is assignable.
Decision AssignTo(const IterationRecord& record, IterationContext& context, PartitionId partition,
                  WorkerId worker);

// What is owed after closing is given up (job_gc_timeout); nothing if not closed.
Decision GiveUp(const IterationRecord& record, IterationContext& context);

}  // namespace penstock::protocol
