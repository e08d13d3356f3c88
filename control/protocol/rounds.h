// SPDX-License-Identifier: Apache-2.0
// Coordinated reads: which element of which partition each round is made of.
// What must hold, and why: docs/exactly_once.md, "Rounds".
//
// With C consumers the elements tC … tC + C - 1 of a partition are its row t, one
// for each: consumer i gets tC + i. So whoever replays a partition sends each index
// to the consumer that it always was for, and sets of what a consumer has are kept
// as rows (index / C), which lie side by side where indices would not.
//
// Partitions take rounds in rotation. Which one has round r follows from the journaled
// Schedule alone; a dispatcher that restarts names the same rounds again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "control/protocol/index_set.h"
#include "penstock/distribute.h"
#include "penstock/ids.h"

namespace penstock::protocol {

// A partition that not all consumers have received is passed over when so many rounds of
// the others behind it have.
inline constexpr int64_t kRoundsBeforeSkip = 2;
// Rows of each partition that a consumer gets which does not say its receive budget.
inline constexpr int64_t kRowsAhead = 4;

struct PartitionRow {
  PartitionId partition;
  int64_t row = 0;
  friend bool operator==(const PartitionRow&, const PartitionRow&) = default;
};

// What departs from one partition after the other; before round `round` is given out.
struct RoundEvent {
  enum class Kind : uint8_t {
    kJoins = 0,   // behind the others
    kSkips = 1,   // the partition whose round it would be waits for its next row
    kLeaves = 2,  // it has no further row
  };
  int64_t round = 0;
  Kind kind = Kind::kJoins;
  PartitionId partition;
  friend bool operator==(const RoundEvent&, const RoundEvent&) = default;
};

// Journaled. Events before `first` are in `rotation` already.
struct Schedule {
  int64_t first = 0;
  std::vector<PartitionRow> rotation;  // in rotation, each with its next row
  int64_t next = 0;                    // in rotation: whose round `first` is
  std::vector<RoundEvent> events;      // ascending
  std::vector<PartitionId> joined;     // ever
  bool Knows(PartitionId partition) const;
  void Add(const RoundEvent& event);
  // Whether it can be walked along: events ascend; those that skip or leave are in rotation. One
  // that was not made here, as in a journal, may not be so.
  bool IsSound() const;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// A place in a schedule that is sound, which moves forward. Stays good when events are added, and
// when those before its place are forgotten.
class RoundCursor {
 public:
  explicit RoundCursor(const Schedule& schedule)
      : round_(schedule.first), rotation_(schedule.rotation), next_(schedule.next) {}

  int64_t round() const { return round_; }
  // Whose round this is; nullopt: no partition has a row left.
  std::optional<PartitionRow> Row(const Schedule& schedule);
  void Advance(const Schedule& schedule);
  // REQUIRES: round >= round().
  void MoveTo(const Schedule& schedule, int64_t round);
  // Whether the schedule says nothing of later rounds yet.
  bool AtTheEnd(const Schedule& schedule);
  // Valid for this round after Row() or AtTheEnd(): in rotation, from next() on.
  const std::vector<PartitionRow>& rotation() const { return rotation_; }
  size_t next() const { return static_cast<size_t>(next_); }

 private:
  // Takes in what the schedule says of this round.
  void Settle(const Schedule& schedule);

  int64_t round_;
  std::vector<PartitionRow> rotation_;
  int64_t next_;
  int64_t settled_ = 0;  // events of this round that are in rotation_
};

// Makes `schedule` begin at `round`. Events of that round stay.
void ForgetBefore(Schedule& schedule, int64_t round);

// --- Remainders ------------------------------------------------------------------

// Of a partition that has no further row: its last elements, fewer than C. Those of
// all partitions, one behind the other, make the last rounds; the last is filled
// by copies (Rests::kPad) of the last element, which stand behind it in its partition.
using Ends = absl::InlinedVector<Index, 1>;  // elements by partition; [0] is partition 1

struct Remainder {
  int64_t before = 0;  // elements in the remainders of the partitions before it
  int64_t pads = 0;    // copies of its last element behind it
  friend bool operator==(const Remainder&, const Remainder&) = default;
};
Remainder ComputeRemainder(const Ends& ends, int64_t consumers, Rests rests, PartitionId partition);

// Rounds that are whole rows; all rounds, with those of the remainders.
int64_t WholeRounds(const Ends& ends, int64_t consumers);
int64_t AllRounds(const Ends& ends, int64_t consumers);
// Elements that the last of all rounds lacks; 0: none.
int64_t LacksInLast(const Ends& ends, int64_t consumers);
// What `consumer` gets in round `round` >= WholeRounds(); nullopt: nothing is there
// for it (it is one of those the last round lacks, and is not filled).
std::optional<PartitionRow> RemainderRow(const Ends& ends, int64_t consumers, Rests rests,
                                         int64_t round, int64_t consumer);

// To which consumer an index goes, and which index a consumer's row is. `remainder`
// counts from row `end` / C on, once it is known.
int64_t ConsumerOf(Index index, int64_t consumers, std::optional<Index> end,
                   const Remainder& remainder);
Index IndexOf(int64_t row, int64_t consumer, int64_t consumers, std::optional<Index> end,
              const Remainder& remainder);

}  // namespace penstock::protocol
