// SPDX-License-Identifier: Apache-2.0
// Coordinated reads: the elements of each round. docs/exactly_once.md, "Rounds", has the rules and
// their reasons.
//
// With C consumers, the elements tC … tC + C - 1 of a partition are its row t, one element for each
// consumer: consumer i gets element tC + i. A replay therefore sends each index to the same
// consumer as before. Sets of a consumer's elements are stored as rows (index / C), which are
// adjacent although the indices are not.
//
// Partitions take rounds in rotation. The journaled Schedule alone determines the partition of each
// round, so a restarted dispatcher gives out the same rounds.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "control/protocol/index_set.h"
#include "penstock/distribute.h"
#include "penstock/ids.h"

namespace penstock::protocol {

// A partition is skipped if some consumer lacks the partition's row when all consumers have already
// received this many later rounds of the other partitions.
inline constexpr int64_t kRoundsBeforeSkip = 2;
// The number of rows of each partition that a consumer may hold if it reports no receive budget.
inline constexpr int64_t kRowsAhead = 4;

struct PartitionRow {
  PartitionId partition;
  int64_t row = 0;
  friend bool operator==(const PartitionRow&, const PartitionRow&) = default;
};

// A change of the rotation that takes effect before round `round` is given out.
struct RoundEvent {
  enum class Kind : uint8_t {
    kJoins = 0,   // the partition joins at the end of the rotation
    kSkips = 1,   // the next partition takes its round; its row is given out later
    kLeaves = 2,  // the partition has no further row
  };
  int64_t round = 0;
  Kind kind = Kind::kJoins;
  PartitionId partition;
  friend bool operator==(const RoundEvent&, const RoundEvent&) = default;
};

// The journaled schedule. Events before round `first` are already applied to `rotation`.
struct Schedule {
  int64_t first = 0;
  std::vector<PartitionRow> rotation;  // each partition with its next row
  int64_t next = 0;                    // position in `rotation` of the partition of round `first`
  std::vector<RoundEvent> events;      // ascending
  std::vector<PartitionId> joined;     // partitions that ever joined
  bool Knows(PartitionId partition) const;
  void Add(const RoundEvent& event);
  // Returns whether the schedule is valid: events ascend, and partitions that are skipped or leave
  // are in the rotation. A schedule that was read from a journal may be invalid.
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
  // Returns whether the schedule has no event of a later round than this one.
  bool AtTheEnd(const Schedule& schedule);
  // The rotation of this round, whose first partition is at next(). Valid only after Row() or
  // AtTheEnd() was called in this round.
  const std::vector<PartitionRow>& rotation() const { return rotation_; }
  size_t next() const { return static_cast<size_t>(next_); }

 private:
  // Applies the schedule's events of this round.
  void Settle(const Schedule& schedule);

  int64_t round_;
  std::vector<PartitionRow> rotation_;
  int64_t next_;
  int64_t settled_ = 0;  // number of this round's events already in rotation_
};

// Makes `schedule` begin at `round`. Events of this round stay.
void ForgetBefore(Schedule& schedule, int64_t round);

// --- Remainders ------------------------------------------------------------------

// The remainder of a partition is the elements after its whole rows, fewer than C. The remainders
// of all partitions, one after the other, make up the last rounds. Under RemainderPolicy::kPad,
// copies of the last element fill the very last round. In the partition, these copies come after
// that element.
using Ends = absl::InlinedVector<Index, 1>;  // elements by partition; [0] is partition 1

struct Remainder {
  int64_t before = 0;  // number of elements in the remainders of earlier partitions
  int64_t pads = 0;    // number of copies that follow its last element
  friend bool operator==(const Remainder&, const Remainder&) = default;
};
Remainder ComputeRemainder(const Ends& ends, int64_t consumers, RemainderPolicy policy,
                           PartitionId partition);

// Returns the number of rounds made of whole rows.
int64_t WholeRounds(const Ends& ends, int64_t consumers);
// Returns the number of all rounds, including those made of remainders.
int64_t AllRounds(const Ends& ends, int64_t consumers);
// Returns the number of elements that the very last round lacks.
int64_t LacksInLast(const Ends& ends, int64_t consumers);
// Returns the row that `consumer` gets in round `round`. nullopt if it gets none, because the last
// round lacks its element and is not filled. REQUIRES: round >= WholeRounds().
std::optional<PartitionRow> RemainderRow(const Ends& ends, int64_t consumers,
                                         RemainderPolicy policy, int64_t round, int64_t consumer);

// ConsumerOf() returns the consumer that gets an index. IndexOf() returns the index of a consumer's
// row. Once the partition's `end` is known, `remainder` determines both from row `end` / C on.
int64_t ConsumerOf(Index index, int64_t consumers, std::optional<Index> end,
                   const Remainder& remainder);
Index IndexOf(int64_t row, int64_t consumer, int64_t consumers, std::optional<Index> end,
              const Remainder& remainder);

}  // namespace penstock::protocol
