// SPDX-License-Identifier: Apache-2.0
// The journaled record of one iteration, and the only function that changes it. Words and rules:
// docs/exactly_once.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "control/protocol/audiences.h"
#include "control/protocol/index_set.h"
#include "control/protocol/positions.h"
#include "control/protocol/received_sets.h"
#include "control/protocol/rounds.h"
#include "penstock/ids.h"

namespace penstock::protocol {

// When an element becomes committed, that is, permanently part of a reader's history. Fixed for a
// job.
enum class CommitPolicy : uint8_t {
  kOnDelivery = 0,  // once the dispatcher has journaled its delivery
  kExplicit = 1,    // once it is in a committed state
  kNever = 2,       // readers share windows (cross-trainer cache), and nothing is owed
};

enum class ReaderStatus : uint8_t { kActive, kLeft, kExpired };

// A saved position of a partition, from which a runner can start at `index`.
struct Bookmark {
  Index index;
  std::string bytes;
  friend bool operator==(const Bookmark&, const Bookmark&) = default;
};

struct PartitionRecord {
  Placement placement{1};
  WorkerId worker;                             // none: collecting answers for `placement`
  absl::InlinedVector<Bookmark, 1> bookmarks;  // ascending
  std::optional<Index> end;                    // number of elements; known once closed
  // Rule 32. The positions of the readers that may get elements under this placement. While the
  // partition collects answers: of those that may have got some under an earlier one. None: all
  // readers, also those that join later.
  std::optional<IndexSet> audience;
  bool collecting() const { return !worker; }
  bool MayServe(size_t reader) const {
    return !audience || audience->Contains(static_cast<Index>(reader));
  }
  friend bool operator==(const PartitionRecord&, const PartitionRecord&) = default;
};

// The record of a client's session on the iteration.
struct ReaderRecord {
  ClientId client;
  Incarnation incarnation;
  ReaderStatus status = ReaderStatus::kActive;
  bool end_notified = false;  // it gets no more fences, and no elements besides `final`
  ReceivedSets committed;     // permanently in its history
  ReceivedSets final;         // what it had delivered or received when notified of the end
  int64_t consumer = -1;      // its number, if each element belongs to a consumer from the start
  int64_t start = 0;          // the round at which its process began
  bool fresh = false;         // its process has not been given a round yet
  CommittedMark mark;         // of `committed`, once the record is `forgotten`
  bool reads() const { return status == ReaderStatus::kActive && !end_notified; }
  friend bool operator==(const ReaderRecord&, const ReaderRecord&) = default;
};

// The readers in the order in which they joined. No reader is removed. Find() takes constant time.
class ReaderList {
 public:
  void Add(ReaderRecord reader);
  // Returns the client's position; nullopt for a client that never joined.
  std::optional<size_t> Find(ClientId client) const;
  size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  auto begin() { return list_.begin(); }
  auto end() { return list_.end(); }
  const ReaderRecord& operator[](size_t i) const { return list_[i]; }
  ReaderRecord& operator[](size_t i) { return list_[i]; }
  friend bool operator==(const ReaderList& a, const ReaderList& b) { return a.list_ == b.list_; }

 private:
  absl::InlinedVector<ReaderRecord, 2> list_;
  absl::flat_hash_map<ClientId, size_t> at_;  // of all readers, once there are more than a few
};

// The rounds of a coordinated read.
struct RoundsRecord {
  int64_t consumers = 0;  // 0: not a coordinated read
  RemainderPolicy remainder_policy = RemainderPolicy::kPad;
  Schedule schedule;
  Ends ends;  // without pads; empty until all partitions have reached their ends
  friend bool operator==(const RoundsRecord&, const RoundsRecord&) = default;
};

// The elements that any reader has committed. Follows from the readers, so it is not compared.
struct CommittedByAny {
  DenseSets sets;
  friend bool operator==(const CommittedByAny&, const CommittedByAny&) { return true; }
};

struct IterationRecord {
  CommitPolicy commit_policy = CommitPolicy::kOnDelivery;
  bool at_least_once = false;  // rule 3 waits for no reader
  RoundsRecord rounds;
  int64_t order_consumers = 0;  // consumers of order kDeterministic (positions.h); 0: none
  absl::InlinedVector<PartitionRecord, 1> partitions;  // [0] is partition 1
  ReaderList readers;
  bool closed = false;     // readers may be notified of the end
  bool finished = false;   // all is committed or explicitly given up; no change follows
  bool forgotten = false;  // finished; only marks of the readers' elements are left
  // These follow from the other data. Apply() keeps them.
  CommittedByAny committed_by_any;  // empty if unites_indices() is false
  Audiences audiences;
  int64_t elements = 0;  // of all partitions, once closed

  const PartitionRecord& partition(PartitionId id) const { return partitions[id.value() - 1]; }
  PartitionRecord& partition(PartitionId id) { return partitions[id.value() - 1]; }
  bool Has(PartitionId id) const { return id && id.value() <= partitions.size(); }
  bool coordinated() const { return rounds.consumers > 0; }
  bool has_order_consumers() const { return order_consumers > 0; }
  // Returns whether any reader may get any element. In such an iteration, elements that a reader
  // holds undelivered may still go to other readers: rule 8 waits until they are delivered, and
  // rule 25 gives them to waiting readers.
  bool shared() const {
    return !coordinated() && !has_order_consumers() && commit_policy != CommitPolicy::kNever;
  }
  // Returns whether the readers' sets contain indices, and not the rows of consumers.
  bool unites_indices() const { return !coordinated() && !has_order_consumers(); }
  // Return the end of a partition, and its elements after the whole rows. Until all ends are known,
  // return nullopt and an empty remainder.
  std::optional<Index> EndOf(PartitionId id) const;
  Remainder RemainderOf(PartitionId id) const;
  // Returns the client's position in `readers`; nullopt for a client that never joined.
  std::optional<size_t> FindReader(ClientId client) const { return readers.Find(client); }
  // Returns the positions of the partitions that may serve the reader at this position
  // (PartitionRecord::MayServe); nullopt: of those that may serve all readers.
  IndexSet PartitionsFor(std::optional<size_t> reader) const {
    return audiences.Of(reader, partitions.size());
  }
  friend bool operator==(const IterationRecord&, const IterationRecord&) = default;
};

// --- Changes -------------------------------------------------------------------

struct PartitionOpened {
  PartitionId partition;
};  // the next number
struct PlacementRaised {
  PartitionId partition;
  Placement placement;
};
struct PartitionAssigned {
  PartitionId partition;
  Placement placement;
  WorkerId worker;
  std::optional<IndexSet> audience = std::nullopt;  // positions of readers; none: all
};
// Further readers of a partition that does not serve all readers.
struct AudienceExtended {
  PartitionId partition;
  IndexSet added;  // positions of readers
};
struct BookmarkAdded {
  PartitionId partition;
  Bookmark bookmark;
};
// Retires all bookmarks below `below`. A bookmark at or above `below` must remain.
struct BookmarksRetired {
  PartitionId partition;
  Index below;
};
struct ReaderJoined {
  ClientId client;
  Incarnation incarnation;
  int64_t consumer = -1;
};
// A new process takes up the session with the elements in its state. A reader that had died or left
// becomes active again.
struct ReaderReplaced {
  ClientId client;
  Incarnation incarnation;
  ReceivedSets committed;
  int64_t start = 0;
};
struct ReaderCommitted {
  ClientId client;
  PartitionId partition;
  IndexSet added;
};
struct ReaderGone {
  ClientId client;
  ReaderStatus status;
};  // kLeft or kExpired
struct ReaderEnded {
  ClientId client;
  ReceivedSets final;
};
struct IterationClosed {
  absl::InlinedVector<Index, 1> ends;
};  // by partition
struct IterationReopened {};
struct IterationFinished {};
// All consumers are at places from which they can continue together.
struct ConsumersFormed {};
struct RoundsRescheduled {
  RoundEvent event;
};
// All partitions have reached their ends.
struct RemaindersPlanned {
  Ends ends;
};
// Forgets the rounds before `below`, for which no consumer will ask again.
struct RoundsForgotten {
  int64_t below = 0;
};

using IterationChange =
    std::variant<PartitionOpened, PlacementRaised, PartitionAssigned, BookmarkAdded,
                 BookmarksRetired, ReaderJoined, ReaderReplaced, ReaderCommitted, ReaderGone,
                 ReaderEnded, IterationClosed, IterationReopened, IterationFinished,
                 ConsumersFormed, RoundsRescheduled, RemaindersPlanned, RoundsForgotten,
                 AudienceExtended>;

// Applies a change; the only way to change a record. Aborts on a change that no coordinator makes
// (an unknown partition or client, a placement that does not rise). Changes that were read or
// received must first be checked with Fits().
void Apply(IterationRecord& record, const IterationChange& change);
bool Fits(const IterationRecord& record, const IterationChange& change);

// --- What follows from a record --------------------------------------------------

// Returns the positions of elements in order kDeterministic. Readers that have no consumer number
// have the elements from before a restore. The order begins with the first element that they lack.
// Takes time linear in the number of readers and, after a restore, of partitions times the readers
// without a consumer number. If consumers have no fixed order, it takes constant time.
Positions PositionsOf(const IterationRecord& record);

// The union of the elements of one partition that several readers have, as indices. `positions`,
// here and below: PositionsOf(record). A caller with many partitions computes them once.
class Together {
 public:
  Together(const IterationRecord& record, const Positions& positions, PartitionId partition);
  void Add(const ReaderRecord& reader, const IndexSet& has);
  IndexSet Indices() &&;

 private:
  const IterationRecord& record_;
  const PartitionId partition_;
  IndexSet indices_;                       // of readers that are not consumers
  absl::InlinedVector<IndexSet, 4> rows_;  // by consumer, in a coordinated read
  std::optional<RowUnion> row_union_;
};

// Drops the histories of a finished iteration. Its ends and marks stay.
void ForgetHistories(IterationRecord& record);

// Returns whether the reader has committed all elements in `state`. In a forgotten record: whether
// `state` is empty, or contains exactly the elements that the reader has committed.
bool HasCommitted(const IterationRecord& record, const ReaderRecord& reader,
                  const ReceivedSets& state);
// Returns whether `state` lacks an element that the reader has committed. In a forgotten record:
// whether `state` has fewer elements than the reader has committed.
bool Lacks(const IterationRecord& record, const ReaderRecord& reader, const ReceivedSets& state);

// Returns what `committed_by_any` must be, computed from the readers.
CommittedByAny ComputeCommitted(const IterationRecord& record);
// Computes what Apply() keeps, for a record that was read.
void ComputeKept(IterationRecord& record);
// Returns whether Apply() has kept what would be computed. For tests.
bool IsKept(const IterationRecord& record);
// Returns the indices that are committed, by any reader.
IndexSet CommittedIndices(const IterationRecord& record, const Positions& positions,
                          PartitionId partition);
IndexSet CommittedIndices(const IterationRecord& record, PartitionId partition);
// Returns the lowest index that is not committed. Takes the same time for any number of readers, if
// the readers are not consumers.
Index FirstUncommitted(const IterationRecord& record, const Positions& positions,
                       PartitionId partition);
// Returns the indices of a closed iteration that would have to be delivered again if all readers
// died now. If there are none in any partition, the iteration is finished.
IndexSet Owed(const IterationRecord& record, const Positions& positions, PartitionId partition);

}  // namespace penstock::protocol
