// SPDX-License-Identifier: Apache-2.0
// The dispatcher's decisions about one iteration. Pure: a function takes the record, its context
// (the knowledge that need not survive) and an event, and returns the changes and messages that
// follow. The caller holds one lock while it applies all changes at once, in order, and then asks
// for the Consequences (even if the decision was empty) until there are none. It journals the
// changes, and sends the messages when the changes are durable. Messages to a peer that is not
// connected are dropped. Messages that still matter are sent again when the peer connects or
// registers.
//
// An event with an unknown partition or client, an older placement or a different incarnation
// decides nothing: it is outdated.
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

// One reader's reports about one partition since the dispatcher started.
struct AckState {
  Placement at;       // of the newest answer or report; none: nothing yet
  IndexSet reported;  // delivered or received
  // In a shared iteration: indices that the end need not wait for, because they are delivered or
  // will be once the reader is notified of the end. These are the indices that were handed on and,
  // under CommitPolicy::kExplicit, the delivered ones; otherwise delivered indices are committed
  // instead.
  IndexSet claimed;
  // In an ordered merge: this reader has room for indices below this one.
  Index receive_limit = 0;
};

struct PartitionContext {
  std::optional<Index> ended;                // under this placement: its number of elements
  absl::InlinedVector<AckState, 2> readers;  // parallel to the record's
  // All indices below are committed. Remembered, because this does not change, so that no search
  // begins at 0 again.
  Index committed_below = 0;
  // In a coordinated read: its number of elements, once a worker has reached its end (a function of
  // its splits, whatever the placement). rows_allowed and remainder_announced are the values that
  // its worker was last told.
  std::optional<Index> at_end;
  int64_t rows_allowed = 0;
  int64_t rows_sent = 0;  // received or on the way, under any placement
  bool remainder_announced = false;
  bool gives_back = false;  // readers give back what they can with their answer for this placement
};

// The state of a consumer of a coordinated read, as far as the dispatcher knows it.
struct ConsumerContext {
  bool reported = false;       // all its elements, since this dispatcher or its process began
  int64_t delivered = 0;       // rounds
  int64_t known = 0;           // rounds that it knew in its last report
  int64_t receive_budget = 0;  // elements that it will hold; 0: not reported
  std::optional<RoundCursor> announced;  // on its present stream: rounds before this place
};
struct RoundsContext {
  std::vector<ConsumerContext> consumers;  // by number
  std::optional<RoundCursor> agreed;       // all consumers have received the rounds before it
  std::optional<RoundCursor> floor;        // rounds before this place are delivered to all
  // By row, not below the floor: the consumer that had the error, and the error.
  std::map<std::pair<PartitionId, int64_t>, std::pair<int64_t, RoundError>> errors;
  std::string waits_for;          // why no round is agreed on; also in order kDeterministic
  bool resend_waits_for = false;  // order kDeterministic: some reader may not know it
  int64_t skips = 0;              // since the dispatcher started
};

// The volatile side. Only the functions below change it, in step with the record.
struct IterationContext {
  absl::InlinedVector<PartitionContext, 1> partitions;
  absl::InlinedVector<bool, 2> present;  // parallel to the record's readers: has a stream
  // Also parallel to the readers: the reader waits, and nothing was given back for it yet.
  absl::InlinedVector<bool, 2> waits;
  RoundsContext rounds;
  bool ordered = false;  // a reader sent a receive limit, as readers of ordered merges do
  Broken broken = Broken::kNone;
};

// Returns the context of a dispatcher that has just started: no peer has been heard from and no
// client is present. Changes no placement: answers are collected as clients connect.
IterationContext MakeIterationContext(const IterationRecord& record, Broken broken = Broken::kNone);

// --- Clients -------------------------------------------------------------------

// A client opens its stream: it joins, reconnects, or takes up its session from a state. Decides
// Welcome, with the fences and the end that apply; or Refused.
Decision OnConnect(const IterationRecord& record, IterationContext& context,
                   const Connect& connect);
// The client's stream ended; the session continues.
void OnDisconnect(const IterationRecord& record, IterationContext& context, ClientId client);
// The client answers a fence or reports.
Decision OnReport(const IterationRecord& record, IterationContext& context, ClientId client,
                  Incarnation incarnation, const Report& report);
// Rule 25. Next() waits at the client, which has nothing left to deliver. Clients repeat this
// report.
void OnWaits(const IterationRecord& record, IterationContext& context, ClientId client,
             Incarnation incarnation);
// Takes the errors that a consumer received. Call it before the consumer's reports of its elements,
// because those may lead to an agreed round. InvalidArgument for an error of an unknown partition,
// and for errors of more rounds than can be ahead of all consumers.
absl::Status OnRoundErrors(const IterationRecord& record, IterationContext& context,
                           ClientId client, Incarnation incarnation,
                           absl::Span<const RoundError> errors);
// Returns InvalidArgument if a consumer claims to know rounds that were not announced on its
// present stream. Its first report there is not checked.
absl::Status CheckRoundsReport(const IterationRecord& record, const IterationContext& context,
                               ClientId client, Incarnation incarnation,
                               const RoundsReport& report);
// A consumer reports its round, after the reports of its elements. REQUIRES: CheckRoundsReport.
Decision OnRoundsReport(const IterationRecord& record, IterationContext& context, ClientId client,
                        Incarnation incarnation, const RoundsReport& report);
// A reader of an ordered merge has room for elements below `below`.
void OnReceiveLimit(const IterationRecord& record, IterationContext& context, ClientId client,
                    Incarnation incarnation, PartitionId partition, Index below);
// Commits a state. Committed is sent when it is journaled.
Decision OnCommit(const IterationRecord& record, IterationContext& context, ClientId client,
                  Incarnation incarnation, const Commit& commit);
// The client stops cleanly. CommitPolicy::kOnDelivery commits the delivered elements; otherwise the
// reader's last state counts. All other elements go to other readers, now or once no state of this
// reader can arrive any more. Left is sent once this is journaled.
Decision OnLeave(const IterationRecord& record, IterationContext& context, ClientId client,
                 Incarnation incarnation, const Leave& leave);
// The reader is declared dead (kExpired): its lease has run out (so by its own clock it returns no
// more elements), or its process is gone.
Decision OnReaderExpired(const IterationRecord& record, IterationContext& context, ClientId client);

// --- Workers -------------------------------------------------------------------

// A worker opens its stream with the placements it holds. Partitions whose assignment never arrived
// are placed again; placements that it should not hold are unassigned.
Decision OnWorkerRegisters(const IterationRecord& record, IterationContext& context,
                           WorkerId worker, absl::Span<const HeldPlacement> held);
// The dispatcher has started. Its record may lack what the previous dispatcher did last.
Decision OnDispatcherStarts(const IterationRecord& record, IterationContext& context);
// The worker was declared dead, or drains: all its partitions are placed again.
Decision OnWorkerGone(const IterationRecord& record, IterationContext& context, WorkerId worker);
// The partition must move, for balance.
Decision OnRelieve(const IterationRecord& record, IterationContext& context, PartitionId partition);
// The worker sent everything outside skip and nothing is in doubt; `end` is the number of elements.
Decision OnEnded(const IterationRecord& record, IterationContext& context, WorkerId worker,
                 PartitionId partition, Placement placement, Index end);
// In a coordinated read: the partition has `end` elements. The worker holds back the last `end` mod
// C of them until AllowRows tells it where they go.
Decision OnAtEnd(const IterationRecord& record, IterationContext& context, WorkerId worker,
                 PartitionId partition, Placement placement, Index end);
// The worker's runner passed a position. Journals it, and retires older bookmarks once a later one
// is at or below the first index that is not committed.
Decision OnBookmark(const IterationRecord& record, IterationContext& context, WorkerId worker,
                    PartitionId partition, Placement placement, const Bookmark& bookmark);

// --- After each of these ---------------------------------------------------------

// Closes the iteration when all is delivered or handed on (if it is not shared: received). Notifies
// the readers that are present of the end. Finishes the iteration when all is committed. Asks
// readers for elements that they hold and others wait for. Call it after every event, even one that
// decided nothing, and again after applying its decision, until it decides nothing.
Decision Consequences(const IterationRecord& record, IterationContext& context);

// --- Placing -------------------------------------------------------------------

// Opens one more partition, with the next number. Decides nothing once the iteration is closed.
Decision OpenPartition(const IterationRecord& record, IterationContext& context);
// Returns the partitions whose answers are complete: a policy may choose a worker for them.
std::vector<PartitionId> Assignable(const IterationRecord& record, const IterationContext& context);
// REQUIRES: `partition` is assignable.
Decision AssignTo(const IterationRecord& record, IterationContext& context, PartitionId partition,
                  WorkerId worker);

// Gives up the elements that are still owed after closing (job_gc_timeout). Decides nothing if the
// iteration is not closed.
Decision GiveUp(const IterationRecord& record, IterationContext& context);

}  // namespace penstock::protocol
