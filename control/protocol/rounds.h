// SPDX-License-Identifier: Apache-2.0
// Coordinated reads: the elements of each round. The rules and their reasons: docs/exactly_once.md,
// "Rounds".
//
// With C consumers the elements tC … tC + C - 1 of a partition are its row t, one for each:
// consumer i gets tC + i. So a replay sends each index to the same consumer as before. Sets of a
// consumer's elements are kept as rows (index / C), which are adjacent where indices are not.
//
// Partitions take rounds in rotation. The journaled Schedule alone determines the partition of
// round r, so a restarted dispatcher gives out the same rounds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "control/protocol/index_set.h"
#include "penstock/distribute.h"
#include "penstock/ids.h"

namespace penstock::protocol {

// A partition is skipped if some consumer lacks its row after all have received this many later
// rounds of the other partitions.
inline constexpr int64_t kRoundsBeforeSkip = 2;
// Rows of each partition for a consumer that reports no receive budget.
inline constexpr int64_t kRowsAhead = 4;

struct PartitionRow {
  PartitionId partition;
  int64_t row = 0;
  friend bool operator==(const PartitionRow&, const PartitionRow&) = default;
};

// A change of the rotation, before round `round` is given out.
struct RoundEvent {
  enum class Kind : uint8_t {
    kJoins = 0,   // after the others
    kSkips = 1,   // the next partition gets its round; its row is given out later
    kLeaves = 2,  // it has no further row
  };
  int64_t round = 0;
  Kind kind = Kind::kJoins;
  PartitionId partition;
  friend bool operator==(const RoundEvent&, const RoundEvent&) = default;
};

// The journaled rotation. Events before `first` are already in `rotation`.
struct Schedule {
  int64_t first = 0;
  std::vector<PartitionRow> rotation;  // each with its next row
  int64_t next = 0;                    // position in `rotation` of the partition of round `first`
  std::vector<RoundEvent> events;      // ascending
  std::vector<PartitionId> joined;     // partitions that ever joined
  bool Knows(PartitionId partition) const;
  void Add(const RoundEvent& event);
  // Returns whether the schedule is valid: events ascend, and partitions that skip or leave are in
  // rotation. A schedule that was read from a journal may not be.
  bool IsSound() const;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// A cursor that moves forward through a valid schedule. It stays valid when events are added, and
// when events before it are forgotten.
class RoundCursor {
 public:
  explicit RoundCursor(const Schedule& schedule)
      : round_(schedule.first), rotation_(schedule.rotation), next_(schedule.next) {}

  int64_t round() const { return round_; }
  // Returns the row of this round; nullopt: no partition has a row left.
  std::optional<PartitionRow> Row(const Schedule& schedule);
  void Advance(const Schedule& schedule);
  // REQUIRES: round >= round().
  void MoveTo(const Schedule& schedule, int64_t round);
  // Returns whether the schedule has no event of a later round yet.
  bool AtTheEnd(const Schedule& schedule);
  // The rotation, which starts at next(). Valid for this round after Row() or AtTheEnd().
  const std::vector<PartitionRow>& rotation() const { return rotation_; }
  size_t next() const { return static_cast<size_t>(next_); }

 private:
  // Applies the schedule's events of this round.
  void Settle(const Schedule& schedule);

  int64_t round_;
  std::vector<PartitionRow> rotation_;
  int64_t next_;
  int64_t settled_ = 0;  // events of this round already in rotation_
};

// Makes `schedule` begin at `round`. Events of that round stay.
void ForgetBefore(Schedule& schedule, int64_t round);

// --- Remainders ------------------------------------------------------------------

// The remainder of a partition is its last elements after the whole rows, fewer than C. The
// remainders of all partitions, one after the other, make up the last rounds. Copies of the last
// element fill the very last round (RemainderPolicy::kPad); the copies follow that element in its
// partition.
using Ends = absl::InlinedVector<Index, 1>;  // elements by partition; [0] is partition 1

struct Remainder {
  int64_t before = 0;  // elements in the remainders of the partitions before it
  int64_t pads = 0;    // copies of its last element, after it
  friend bool operator==(const Remainder&, const Remainder&) = default;
};
Remainder ComputeRemainder(const Ends& ends, int64_t consumers, RemainderPolicy policy,
                           PartitionId partition);

// Returns the number of rounds made of whole rows.
int64_t WholeRounds(const Ends& ends, int64_t consumers);
// Returns the number of all rounds, including those made of remainders.
int64_t AllRounds(const Ends& ends, int64_t consumers);
// Returns how many elements the last of all rounds lacks; 0: none.
int64_t LacksInLast(const Ends& ends, int64_t consumers);
// Returns the row that `consumer` gets in round `round` >= WholeRounds(); nullopt: none (the last
// round lacks its element, and is not filled).
std::optional<PartitionRow> RemainderRow(const Ends& ends, int64_t consumers,
                                         RemainderPolicy policy, int64_t round, int64_t consumer);

// ConsumerOf() returns the consumer that gets an index; IndexOf() returns the index of a consumer's
// row. Once `end` is known, `remainder` applies from row `end` / C on.
int64_t ConsumerOf(Index index, int64_t consumers, std::optional<Index> end,
                   const Remainder& remainder);
Index IndexOf(int64_t row, int64_t consumer, int64_t consumers, std::optional<Index> end,
              const Remainder& remainder);

}  // namespace penstock::protocol
