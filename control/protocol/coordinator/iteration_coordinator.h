// SPDX-License-Identifier: Apache-2.0
// The dispatcher's decisions about one iteration. Pure: a function takes the record, its context
// (the data that need not survive) and an event, and returns the changes and messages that follow.
// The caller holds one lock while it applies all changes, in order. Under the same lock, it then
// calls Consequences() and applies the result, until the result is empty; it does so even if the
// first decision was empty. The caller journals the changes, and sends the messages when the
// changes are durable. Messages to a peer that is not connected are dropped. Messages that still
// matter are sent again when the peer connects or registers.
//
// An event with an unknown partition or client, an older placement or a different incarnation is
// outdated, and decides nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "control/protocol/coordinator/iteration_context.h"
#include "control/protocol/iteration_record.h"
#include "control/protocol/messages.h"

namespace penstock::protocol {

struct Decision {
  absl::InlinedVector<IterationChange, 3> changes;
  std::vector<Message> messages;
  bool empty() const { return changes.empty() && messages.empty(); }
};

// --- Clients -------------------------------------------------------------------

// A client opens its stream: it joins, reconnects, or takes up its session from a state. Decides on
// Welcome, with the fences and the end that the client must get, or on Refused.
Decision OnConnect(const IterationRecord& record, IterationContext& context,
                   const Connect& connect);
// Returns for which reason OnConnect() would refuse the state of a client that comes back; nullopt:
// for none.
std::optional<Refusal> WhyRefused(const IterationRecord& record, const IterationContext& context,
                                  const Connect& connect);
// The client's stream ended; the session continues.
void OnDisconnect(const IterationRecord& record, IterationContext& context, ClientId client);
// The client answers a fence, or sends a report.
Decision OnReport(const IterationRecord& record, IterationContext& context, ClientId client,
                  Incarnation incarnation, const Report& report);
// Rule 33. The client has no other elements than those that it has reported on this stream. Ignored
// unless it said in Connect that it would tell this, and its Welcome was partial.
Decision OnReportsComplete(const IterationRecord& record, IterationContext& context,
                           ClientId client, Incarnation incarnation);
// Rule 25. Next() waits at the client, which has no element left to deliver. Clients repeat this
// report.
void OnWaits(const IterationRecord& record, IterationContext& context, ClientId client,
             Incarnation incarnation);
// Takes the errors that a consumer received. Call it before the consumer's reports of its elements,
// because these reports may complete a round. InvalidArgument for an error of an unknown partition,
// and for errors of more rounds than can be undelivered at once.
absl::Status OnRoundErrors(const IterationRecord& record, IterationContext& context,
                           ClientId client, Incarnation incarnation,
                           absl::Span<const RoundError> errors);
// Returns InvalidArgument if a consumer claims to know rounds that were not announced on its
// present stream. The consumer's first report on the stream is not checked.
absl::Status CheckRoundsReport(const IterationRecord& record, const IterationContext& context,
                               ClientId client, Incarnation incarnation,
                               const RoundsReport& report);
// A consumer reports its round, after the reports of its elements. REQUIRES: CheckRoundsReport.
Decision OnRoundsReport(const IterationRecord& record, IterationContext& context, ClientId client,
                        Incarnation incarnation, const RoundsReport& report);
// A reader of an ordered merge has room for elements below `below`.
void OnReceiveLimit(const IterationRecord& record, IterationContext& context, ClientId client,
                    Incarnation incarnation, PartitionId partition, Index below);
// Commits a state. Committed is sent when the commit is journaled.
Decision OnCommit(const IterationRecord& record, IterationContext& context, ClientId client,
                  Incarnation incarnation, const Commit& commit);
// The client stops cleanly. Under CommitPolicy::kOnDelivery its delivered elements are committed;
// otherwise only the elements in its last committed state are. All other elements go to other
// readers, now or when no further state of this reader can arrive. Left is sent once the decision
// is journaled.
Decision OnLeave(const IterationRecord& record, IterationContext& context, ClientId client,
                 Incarnation incarnation, const Leave& leave);
// The reader is declared dead (kExpired), because its process is gone, or because its lease has run
// out. In the second case the reader returns no more elements, according to its own clock.
Decision OnReaderExpired(const IterationRecord& record, IterationContext& context, ClientId client);

// --- Workers -------------------------------------------------------------------

// Returns the worker's partitions according to the record, ascending; none for no worker. Looks at
// all partitions, so a caller that has the list passes it to the functions below.
std::vector<PartitionId> PartitionsOf(const IterationRecord& record, WorkerId worker);

// A worker opens its stream, and names the placements that it holds. Partitions whose assignment
// never arrived are placed again. Placements that the worker should not hold are unassigned.
// `its`: the worker's partitions according to the record, ascending.
Decision OnWorkerRegisters(const IterationRecord& record, IterationContext& context,
                           WorkerId worker, absl::Span<const PartitionId> its,
                           absl::Span<const HeldPlacement> held);
Decision OnWorkerRegisters(const IterationRecord& record, IterationContext& context,
                           WorkerId worker, absl::Span<const HeldPlacement> held);
// The dispatcher has started. The last actions of the previous dispatcher may be missing in the
// record.
Decision OnDispatcherStarts(const IterationRecord& record, IterationContext& context);
// The worker was declared dead, or drains. All its partitions are placed again. `its`: as above.
Decision OnWorkerGone(const IterationRecord& record, IterationContext& context,
                      absl::Span<const PartitionId> its);
Decision OnWorkerGone(const IterationRecord& record, IterationContext& context, WorkerId worker);
// The partition must move so that the load is balanced.
Decision OnRelieve(const IterationRecord& record, IterationContext& context, PartitionId partition);
// The worker has sent all elements outside skip, and none is in doubt. `end`: the number of
// elements.
Decision OnEnded(const IterationRecord& record, IterationContext& context, WorkerId worker,
                 PartitionId partition, Placement placement, Index end);
// In a coordinated read: the partition has `end` elements. The worker holds back the last `end` mod
// C of these elements until AllowRows tells it which consumers get them.
Decision OnAtEnd(const IterationRecord& record, IterationContext& context, WorkerId worker,
                 PartitionId partition, Placement placement, Index end);
// The worker's runner passed a position. Adds it as a bookmark. A bookmark is retired once a later
// bookmark is at or below the first index that is not committed.
Decision OnBookmark(const IterationRecord& record, IterationContext& context, WorkerId worker,
                    PartitionId partition, Placement placement, const Bookmark& bookmark);

// --- After each event ------------------------------------------------------------

// Closes the iteration when all elements are delivered or handed on (if it is not shared:
// received). Notifies the present readers of the end. Finishes the iteration when all elements are
// committed. Asks readers for elements that they hold and for which others wait. Call it after
// every event, even if the event decided nothing. Call it again after applying its decision, until
// it decides nothing.
Decision Consequences(const IterationRecord& record, IterationContext& context);

// --- Placing -------------------------------------------------------------------

// Counts a change of the record in `placing_changes`, unless placing does not depend on it, and in
// `reader_changes`. Call it after each change.
void CountForPlacing(IterationContext& context, const IterationChange& change);
// Opens one more partition, with the next number. Decides nothing once the iteration is closed.
Decision OpenPartition(const IterationRecord& record, IterationContext& context);
// Returns the partitions whose answers are complete. A policy may choose workers for these
// partitions.
std::vector<PartitionId> Assignable(const IterationRecord& record, const IterationContext& context);
// Rule 32. `audience`: the positions of the readers that get elements; none: all readers, also
// those that join later. An iteration that is not shared, or is read at least once, has none. A
// partition whose elements were given back keeps the audience that it has. REQUIRES: `partition` is
// assignable, and MustAnswer() is empty for this audience.
Decision AssignTo(const IterationRecord& record, IterationContext& context, PartitionId partition,
                  WorkerId worker, std::optional<IndexSet> audience = std::nullopt);
// Returns the readers of that audience that have not answered for the partition's placement yet.
IndexSet MustAnswer(const IterationRecord& record, const IterationContext& context,
                    PartitionId partition, const std::optional<IndexSet>& audience);
// Adds readers to the audience of a partition that does not serve all readers. They are fenced. If
// the partition is assigned, its worker serves them once they have answered.
Decision ExtendAudience(const IterationRecord& record, IterationContext& context,
                        PartitionId partition, const IndexSet& readers);

// Gives up the elements that a closed iteration still owes (job_gc_timeout). Decides nothing if the
// iteration is not closed.
Decision GiveUp(const IterationRecord& record, IterationContext& context);

}  // namespace penstock::protocol
