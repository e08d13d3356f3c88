// SPDX-License-Identifier: Apache-2.0
// The dispatcher's knowledge about one iteration, beside the record: reports, ends, streams. Lost
// when the dispatcher ends. iteration_coordinator.h changes it, in step with the record.
//
// There are far too many pairs of partitions and readers for an entry each. So most answers follow
// from two numbers: a reader has answered for each placement that was raised before its process
// joined, because workers hear of the process under this placement or later ones only. AckStates
// hold the other answers, and elements (docs/exactly_once.md, rule 33).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "control/protocol/coordinator/ack_states.h"
#include "control/protocol/each_position.h"
#include "control/protocol/iteration_record.h"
#include "control/protocol/messages.h"
#include "control/protocol/rules.h"

namespace penstock::protocol {

struct PartitionContext {
  std::optional<Index> ended;  // the number of elements, once ended under this
                               // placement
  AckStates acks;
  uint64_t raised = 0;  // IterationContext::raises when the placement was raised last
  // In a coordinated read: the partition's number of elements, once a worker has reached its end.
  // The number depends only on the partition's splits, not on the placement. rows_allowed and
  // remainder_announced describe the last AllowRows or Assign that was sent to the worker.
  std::optional<Index> at_end;
  int64_t rows_allowed = 0;
  int64_t rows_sent = 0;  // rows received or on the way, under any placement
  bool remainder_announced = false;
  bool gives_back = false;  // readers give elements back with their answer for this placement
  // Not assigned since the dispatcher started. The record may be an older copy, which lacks readers
  // that the partition had, so the next raise fences all readers.
  bool asks_all = false;
};

// The dispatcher's knowledge about a consumer of a coordinated read.
struct ConsumerContext {
  bool reported = false;       // all its elements, since the start of this dispatcher or, if later,
                               // of its process
  int64_t delivered = 0;       // rounds
  int64_t known = 0;           // rounds that it knew at its last report
  int64_t receive_budget = 0;  // elements that it will hold; 0: not reported
  std::optional<RoundCursor> announced;  // rounds before this place were announced on its present
                                         // stream
};
struct RoundsContext {
  std::vector<ConsumerContext> consumers;  // by number
  std::optional<RoundCursor> agreed;       // all consumers have received the rounds before this
                                           // place
  std::optional<RoundCursor> floor;        // rounds before this place are delivered to all
                                           // consumers
  // Errors of rows at or after the floor. The value: the consumer that had the error, and the
  // error.
  std::map<std::pair<PartitionId, int64_t>, std::pair<int64_t, RoundError>> errors;
  std::string waits_for;          // why no round is agreed on; also in order kDeterministic
  bool resend_waits_for = false;  // order kDeterministic: some reader may not know `waits_for`
  int64_t skips = 0;              // the number of skips since the dispatcher started
};

// The dispatcher's knowledge about a reader, in all partitions.
struct ReaderContext {
  uint64_t reset = 0;  // IterationContext::raises when its process joined; 0: in an earlier life
  // The reader has no elements, in any partition, of which this dispatcher does not know.
  bool known = false;
  bool completes = false;  // its process will say when all it has was reported on its stream
  IndexSet on_stream;      // positions of the partitions reported on the stream, until then
  IndexSet listed;  // positions of the partitions that it has reported; empty once it is known
  IndexSet acked;   // positions of the partitions in whose AckStates it has an entry
  // The position of a partition that is checked first, because it was the first of which the reader
  // had not reported all before it can be notified of the end. It changes no decision.
  size_t check_first_to_end = 0;
};

// The data about an iteration that is not journaled. Only the functions of
// iteration_coordinator.h change it, in step with the record.
struct IterationContext {
  absl::InlinedVector<PartitionContext, 1> partitions;
  absl::InlinedVector<bool, 2> present;  // parallel to the record's readers: the reader has a
                                         // stream
  absl::InlinedVector<ReaderContext, 2> readers;  // also parallel to the readers
  // Also parallel to the readers: the reader waits, and no element has been given back for it yet.
  absl::InlinedVector<bool, 2> waits;
  RoundsContext rounds;
  bool ordered = false;  // a reader sent a receive limit: this is an ordered merge
  // Counts the changes of this context and of its record after which a partition may be opened or
  // assigned that could not be before. If the count is what it was, Assignable() returns nothing
  // new, and no partition has ended.
  uint64_t placing_changes = 0;
  // Counts how often a reader has joined or gone, or its process has changed. Each may complete the
  // answers for many partitions at once.
  uint64_t reader_changes = 0;
  // Positions of partitions that are checked first, because they were the first that did not allow
  // the iteration to close, or to share elements out. They change no decision.
  size_t check_first_to_close = 0;
  size_t check_first_to_share = 0;
  size_t opened_before = 0;  // the number of partitions when the dispatcher started
  size_t num_ended = 0;      // the number of partitions that have ended (PartitionContext::ended)
  uint64_t raises = 1;       // counts the raises of placements since the dispatcher started
  // Positions of readers, ascending: those that read and are not known; those that were notified of
  // the end. The lists may also name readers to which this no longer applies.
  absl::InlinedVector<size_t, 2> unknown;
  absl::InlinedVector<size_t, 2> ended;
  IndexSet collecting;  // positions of all partitions that are collecting, and perhaps of others
  // Once closed: positions of all partitions with elements that are not committed, and perhaps of
  // others. No partition comes back, because what is committed stays so.
  IndexSet owed;
  Broken broken = Broken::kNone;

  // Returns whether the dispatcher knows the elements of the partition that the reader had when it
  // last answered or joined.
  bool Knows(size_t partition, size_t reader) const;
  // Returns whether the reader accepts no elements of the partition under placements below
  // `placement`, the present one, and has reported the elements that it has.
  bool HasAnswered(size_t partition, size_t reader, Placement placement) const;
  // Returns the positions of the partitions of which this dispatcher may not know all elements that
  // the reader has: those for which Knows() is false.
  IndexSet Unknown(size_t reader) const;
  // Returns the reader's state in the partition's AckStates. Adds an empty one if it has none.
  AckState& AckAt(size_t partition, size_t reader);
  void EraseAck(size_t partition, size_t reader);
  // Erases the partition's AckStates for whose entries `drop` returns true.
  template <class Drop>
  void EraseAcksIf(size_t partition, const Drop& drop) {
    partitions[partition].acks.EraseIf([&](const AckStates::Entry& entry) {
      const bool drops = drop(entry);
      if (drops) readers[entry.reader].acked.Remove(JustPosition(partition));
      return drops;
    });
  }
  // Returns whether `acked` and `num_ended` are what follows from the partitions, and the sets of
  // positions lack none. For tests.
  bool IsKept(const IterationRecord& record) const;

  // The partition has ended under its present placement, with `end` elements.
  void NoteEndOf(size_t partition, Index end);
  // The reader has reported the partition.
  void NoteReported(size_t partition, size_t reader);
  // The reader has reported all partitions.
  void NoteKnown(size_t reader);
  // The reader leaves or is declared dead.
  void NoteGone(size_t reader);
  // The reader is notified of the end.
  void NoteEnded(size_t reader);
  // The partition is raised, so it has not ended.
  void NoteRaised(size_t partition);
  // A process has joined as the reader at this position, and has nothing that needs an entry in
  // AckStates. The positions up to this one exist from now on. Call it after the raises that the
  // process causes.
  void ResetReader(size_t reader);
};

// Returns the context of a dispatcher that has just started: no peer has been heard from and no
// client is present. Changes no placement. Answers are collected as clients connect.
IterationContext MakeIterationContext(const IterationRecord& record, Broken broken = Broken::kNone);

}  // namespace penstock::protocol
