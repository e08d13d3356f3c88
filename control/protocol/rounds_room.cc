// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/rounds_room.h"

#include <algorithm>
#include <optional>

namespace penstock::protocol {
namespace {

class Room {
 public:
  Room(const IterationRecord& record, const Desk& desk)
      : record_(record),
        desk_(desk),
        schedule_(record.rounds.schedule),
        room_(RoomOf(record, desk)) {}

  std::vector<int64_t> Turns() {
    const RoundsDesk& rounds = desk_.rounds;
    for (const PartitionDesk& partition : desk_.partitions) turns_.push_back(partition.turns_sent);
    if (!rounds.agreed && !schedule_.joined.empty()) return turns_;  // told once that is known
    RoundCursor agreed = rounds.agreed.value_or(RoundCursor(schedule_));
    agreed.AtTheEnd(schedule_);
    if (agreed.lanes().empty()) {
      BeginAll();
    } else {
      const int64_t joining = BeginOne(agreed);
      GoOn(agreed, std::max<int64_t>(1, room_ - joining));
    }
    for (size_t p = 0; p < turns_.size(); ++p) {
      if (HasLeft(p, agreed) || IsRestAlone(p)) turns_[p] = kAllTurns;
    }
    return std::move(turns_);
  }

 private:
  std::optional<Index> EndOf(size_t p) const {
    if (const auto end = record_.EndOf(PartitionId(p + 1))) return end;
    return desk_.partitions[p].at_end;
  }
  bool IsOver(size_t p, int64_t turn) const {
    const std::optional<Index> end = EndOf(p);
    return end && turn >= *end / record_.rounds.consumers;
  }
  // It has no turn in the schedule yet, and will.
  bool IsToJoin(size_t p) const { return !schedule_.Knows(PartitionId(p + 1)) && !IsOver(p, 0); }
  bool HasLeft(size_t p, const RoundCursor& agreed) const {
    const PartitionId partition(p + 1);
    if (!schedule_.Knows(partition)) return false;
    return JoinedBefore(partition, agreed.round()) &&
           std::none_of(agreed.lanes().begin(), agreed.lanes().end(),
                        [&](const TurnOf& lane) { return lane.partition == partition; });
  }
  bool IsRestAlone(size_t p) const { return !schedule_.Knows(PartitionId(p + 1)) && IsOver(p, 0); }
  // Elements of the partitions to join that a consumer may have.
  int64_t Begun() const {
    int64_t begun = 0;
    for (size_t p = 0; p < turns_.size(); ++p) begun += IsToJoin(p) && turns_[p] > 0 ? 1 : 0;
    return begun;
  }
  bool MayBegin(size_t p) const {
    return IsToJoin(p) && turns_[p] == 0 && !record_.partitions[p].collecting();
  }

  bool IsAllowed(const TurnOf& turn) const {
    const size_t p = turn.partition.value() - 1;
    return turn.turn < turns_[p] || IsOver(p, turn.turn);
  }

  void BeginAll() {
    int64_t held = Begun() + Held();
    for (size_t p = 0; p < turns_.size() && held < room_; ++p) {
      if (!MayBegin(p)) continue;
      turns_[p] = 1;
      ++held;
    }
  }

  // One after the other, beside those that have turns, whose next comes first; what it
  // needs, or will. With room for one element alone a partition joins before it has sent
  // any (rounds_desk.cc).
  int64_t BeginOne(const RoundCursor& agreed) {
    if (const int64_t begun = Begun(); begun > 0 || room_ == 1) return begun;
    for (size_t p = 0; p < turns_.size(); ++p) {
      if (!MayBegin(p)) continue;
      const TurnOf& next = agreed.lanes()[agreed.next()];
      if (Held() < room_ && IsAllowed(next)) turns_[p] = 1;
      return 1;
    }
    return 0;
  }

  // Of those that have turns: what a consumer may have and not have taken.
  int64_t Held() const {
    const RoundsDesk& rounds = desk_.rounds;
    if (!rounds.floor) return 0;  // none has a turn yet
    int64_t held = 0;
    for (size_t p = 0; p < turns_.size(); ++p) {
      const PartitionId partition(p + 1);
      if (!schedule_.Knows(partition)) continue;
      int64_t turns = turns_[p];
      if (const auto end = EndOf(p)) turns = std::min(turns, *end / record_.rounds.consumers);
      int64_t taken = 0;  // it joined behind the floor
      bool there = false;
      for (const TurnOf& lane : rounds.floor->lanes()) {
        if (lane.partition != partition) continue;
        taken = lane.turn;
        there = true;
      }
      if (!there && JoinedBefore(partition, rounds.floor->round())) continue;  // and has left
      held += std::max<int64_t>(0, turns - taken);
    }
    return held;
  }
  bool JoinedBefore(PartitionId partition, int64_t round) const {
    return std::none_of(schedule_.events.begin(), schedule_.events.end(), [&](const auto& event) {
      return event.kind == RoundEvent::Kind::kJoins && event.partition == partition &&
             event.round >= round;
    });
  }

  // In the order of rounds. The next one that consumers wait for has a place even where
  // what a failure brought takes all.
  void GoOn(const RoundCursor& agreed, int64_t most) {
    const std::vector<TurnOf>& lanes = agreed.lanes();
    const size_t count = lanes.size();
    int64_t held = Held();
    bool waited_for = agreed.round() == desk_.rounds.floor->round();
    size_t over = 0;  // of the last lanes looked at, one behind the other
    for (size_t i = 0; (held < most || waited_for) && over < count; ++i) {
      const TurnOf& lane = lanes[(agreed.next() + i) % count];
      const int64_t turn = lane.turn + static_cast<int64_t>(i / count);
      const size_t p = lane.partition.value() - 1;
      if (IsOver(p, turn)) {
        ++over;
        continue;
      }
      over = 0;
      waited_for = false;
      if (turn < turns_[p]) continue;
      turns_[p] = turn + 1;
      ++held;
    }
  }

  const IterationRecord& record_;
  const Desk& desk_;
  const Schedule& schedule_;
  const int64_t room_;
  std::vector<int64_t> turns_;
};

}  // namespace

int64_t RoomOf(const IterationRecord& record, const Desk& desk) {
  const std::vector<ConsumerDesk>& consumers = desk.rounds.consumers;
  if (static_cast<int64_t>(consumers.size()) < record.rounds.consumers) return 1;
  int64_t room = kTurnsAhead * std::max<int64_t>(1, static_cast<int64_t>(record.partitions.size()));
  for (size_t c = 0; c < consumers.size(); ++c) {
    const int64_t its = !consumers[c].said ? 1 : consumers[c].room;
    if (its > 0) room = c == 0 ? its : std::min(room, its);
  }
  return room;
}

void NoteAllowed(int64_t turns, PartitionDesk& desk) {
  desk.turns_allowed = std::max(desk.turns_allowed, turns);
  if (turns != kAllTurns) desk.turns_sent = std::max(desk.turns_sent, turns);
}

std::vector<int64_t> TurnsWithinRoom(const IterationRecord& record, const Desk& desk) {
  return Room(record, desk).Turns();
}

}  // namespace penstock::protocol
