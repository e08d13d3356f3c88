// SPDX-License-Identifier: Apache-2.0
// Coordinated reads: which element of which partition each round is made of.
// What must hold, and why: docs/exactly_once.md, "Rounds".
//
// With C consumers the elements tC … tC + C - 1 of a partition are its turn t, one
// for each: consumer i gets tC + i. So whoever replays a partition sends each index
// to the consumer that it always was for, and sets of what a consumer has are kept
// as turns (index / C), which lie side by side where indices would not.
//
// Partitions have rounds in turn. Which one has round r follows from the journaled
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

// A partition that has not landed everywhere is passed over when so many rounds of
// the others behind it have.
inline constexpr int64_t kRoundsBeforeSkip = 2;
// Turns of each partition for which a consumer has room that says nothing of it.
inline constexpr int64_t kTurnsAhead = 4;

struct TurnOf {
  PartitionId partition;
  int64_t turn = 0;
  friend bool operator==(const TurnOf&, const TurnOf&) = default;
};

// What departs from one partition after the other; before round `round` is given out.
struct RoundEvent {
  enum class Kind : uint8_t {
    kJoins = 0,   // behind the others
    kSkips = 1,   // the partition whose round it would be waits for its next turn
    kLeaves = 2,  // it has no further turn
  };
  int64_t round = 0;
  Kind kind = Kind::kJoins;
  PartitionId partition;
  friend bool operator==(const RoundEvent&, const RoundEvent&) = default;
};

// Journaled. Events before `first` are in `lanes` already.
struct Schedule {
  int64_t first = 0;
  std::vector<TurnOf> lanes;        // in turn, each with the turn that it has next
  int64_t next = 0;                 // in lanes: whose round `first` is
  std::vector<RoundEvent> events;   // ascending
  std::vector<PartitionId> joined;  // ever
  bool Knows(PartitionId partition) const;
  void Add(const RoundEvent& event);
  // Whether it can be walked along: events ascend, and those that skip or leave are in turn. One
  // that was not made here, as in a journal, may not be so.
  bool IsSound() const;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// A place in a schedule that is sound, which moves forward. Stays good when events are added, and
// when those before its place are forgotten.
class RoundCursor {
 public:
  explicit RoundCursor(const Schedule& schedule)
      : round_(schedule.first), lanes_(schedule.lanes), next_(schedule.next) {}

  int64_t round() const { return round_; }
  // Whose round this is; nullopt: no partition has a turn left.
  std::optional<TurnOf> Turn(const Schedule& schedule);
  void Advance(const Schedule& schedule);
  // REQUIRES: round >= round().
  void MoveTo(const Schedule& schedule, int64_t round);
  // Whether the schedule says nothing of later rounds yet.
  bool AtTheEnd(const Schedule& schedule);
  // Valid for this round after Turn() or AtTheEnd(): in turn, from next() on.
  const std::vector<TurnOf>& lanes() const { return lanes_; }
  size_t next() const { return static_cast<size_t>(next_); }

 private:
  // Takes in what the schedule says of this round.
  void Settle(const Schedule& schedule);

  int64_t round_;
  std::vector<TurnOf> lanes_;
  int64_t next_;
  int64_t settled_ = 0;  // events of this round that are in lanes_
};

// Makes `schedule` begin at `round`. Events of that round stay.
void ForgetBefore(Schedule& schedule, int64_t round);

// --- The rests -------------------------------------------------------------------

// Of a partition that has no further turn: its last elements, fewer than C. Those of
// all partitions, one behind the other, make the last rounds; the last is filled
// by copies (Rests::kPad) of the last element, which stand behind it in its partition.
using Ends = absl::InlinedVector<Index, 1>;  // elements by partition; [0] is partition 1

struct RestOf {
  int64_t before = 0;  // elements in the rests of the partitions before it
  int64_t pads = 0;    // copies of its last element behind it
  friend bool operator==(const RestOf&, const RestOf&) = default;
};
RestOf RestOfPartition(const Ends& ends, int64_t consumers, Rests rests, PartitionId partition);

// Rounds that are whole turns; all rounds, with those of the rests.
int64_t WholeRounds(const Ends& ends, int64_t consumers);
int64_t AllRounds(const Ends& ends, int64_t consumers);
// Elements that the last of all rounds lacks; 0: none.
int64_t LacksInLast(const Ends& ends, int64_t consumers);
// What `consumer` gets in round `round` >= WholeRounds(); nullopt: nothing is there
// for it (it is one of those the last round lacks, and is not filled).
std::optional<TurnOf> RestTurn(const Ends& ends, int64_t consumers, Rests rests, int64_t round,
                               int64_t consumer);

// To which consumer an index goes, and which index a consumer's turn is. `rest`
// counts from the turn `end` / C on, once it is known.
int64_t ConsumerOf(Index index, int64_t consumers, std::optional<Index> end, const RestOf& rest);
Index IndexOf(int64_t turn, int64_t consumer, int64_t consumers, std::optional<Index> end,
              const RestOf& rest);

}  // namespace penstock::protocol
