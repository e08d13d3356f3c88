// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/rounds.h"

#include <algorithm>

#include "control/protocol/invariant.h"

namespace penstock::protocol {
namespace {

auto FirstEventOf(const Schedule& schedule, int64_t round) {
  return std::lower_bound(schedule.events.begin(), schedule.events.end(), round,
                          [](const RoundEvent& event, int64_t at) { return event.round < at; });
}

void Take(const RoundEvent& event, std::vector<TurnOf>& lanes, int64_t& next) {
  const auto count = static_cast<int64_t>(lanes.size());
  switch (event.kind) {
    case RoundEvent::Kind::kJoins:
      lanes.push_back({event.partition, 0});
      return;
    case RoundEvent::Kind::kSkips:
      next = (next + 1) % count;
      return;
    case RoundEvent::Kind::kLeaves: {
      const auto at = std::find_if(lanes.begin(), lanes.end(), [&](const TurnOf& lane) {
        return lane.partition == event.partition;
      });
      PENSTOCK_INVARIANT(at != lanes.end());
      const int64_t position = at - lanes.begin();
      lanes.erase(at);
      if (position < next) --next;
      if (next == count - 1) next = 0;
      return;
    }
  }
}

int64_t RestsTogether(const Ends& ends, int64_t consumers) {
  int64_t together = 0;
  for (Index end : ends) together += end % consumers;
  return together;
}

}  // namespace

bool Schedule::Knows(PartitionId partition) const {
  return std::find(joined.begin(), joined.end(), partition) != joined.end();
}

void Schedule::Add(const RoundEvent& event) {
  events.push_back(event);
  if (event.kind == RoundEvent::Kind::kJoins) joined.push_back(event.partition);
}

bool Schedule::IsSound() const {
  if (next < 0 || next >= std::max<int64_t>(1, static_cast<int64_t>(lanes.size()))) return false;
  std::vector<PartitionId> present;
  for (const TurnOf& lane : lanes) present.push_back(lane.partition);
  int64_t last = first;
  for (const RoundEvent& event : events) {
    const auto at = std::find(present.begin(), present.end(), event.partition);
    const bool joins = event.kind == RoundEvent::Kind::kJoins;
    if (event.round < last || joins != (at == present.end())) return false;
    if (joins && !Knows(event.partition)) return false;
    if (joins) present.push_back(event.partition);
    if (event.kind == RoundEvent::Kind::kLeaves) present.erase(at);
    last = event.round;
  }
  return true;
}

void RoundCursor::Settle(const Schedule& schedule) {
  for (auto event = FirstEventOf(schedule, round_) + settled_;
       event != schedule.events.end() && event->round == round_; ++event, ++settled_) {
    Take(*event, lanes_, next_);
  }
}

std::optional<TurnOf> RoundCursor::Turn(const Schedule& schedule) {
  Settle(schedule);
  if (lanes_.empty()) return std::nullopt;
  return lanes_[next()];
}

void RoundCursor::Advance(const Schedule& schedule) {
  MoveTo(schedule, round_ + 1);
}

void RoundCursor::MoveTo(const Schedule& schedule, int64_t round) {
  PENSTOCK_INVARIANT(round >= round_);
  while (round_ < round) {
    Settle(schedule);
    const auto event = FirstEventOf(schedule, round_ + 1);
    const int64_t to = event == schedule.events.end() ? round : std::min(round, event->round);
    const int64_t rounds = to - round_;
    if (const auto count = static_cast<int64_t>(lanes_.size()); count > 0) {
      for (TurnOf& lane : lanes_) lane.turn += rounds / count;
      for (int64_t i = 0; i < rounds % count; ++i) {
        ++lanes_[static_cast<size_t>((next_ + i) % count)].turn;
      }
      next_ = (next_ + rounds) % count;
    }
    round_ = to;
    settled_ = 0;
  }
}

bool RoundCursor::AtTheEnd(const Schedule& schedule) {
  Settle(schedule);
  return schedule.events.empty() || schedule.events.back().round <= round_;
}

void ForgetBefore(Schedule& schedule, int64_t round) {
  RoundCursor cursor(schedule);
  cursor.MoveTo(schedule, round);
  schedule.events.erase(schedule.events.begin(), FirstEventOf(schedule, round));
  schedule.first = round;
  schedule.lanes = cursor.lanes();
  schedule.next = static_cast<int64_t>(cursor.next());
}

// --- The rests -------------------------------------------------------------------

RestOf RestOfPartition(const Ends& ends, int64_t consumers, Rests rests, PartitionId partition) {
  RestOf rest;
  const size_t position = partition.value() - 1;
  for (size_t p = 0; p < position; ++p) rest.before += ends[p] % consumers;
  if (rests != Rests::kPad || ends[position] % consumers == 0) return rest;
  const bool last = std::all_of(ends.begin() + static_cast<ptrdiff_t>(position) + 1, ends.end(),
                                [&](Index end) { return end % consumers == 0; });
  if (last) rest.pads = LacksInLast(ends, consumers);
  return rest;
}

int64_t WholeRounds(const Ends& ends, int64_t consumers) {
  int64_t rounds = 0;
  for (Index end : ends) rounds += end / consumers;
  return rounds;
}

int64_t AllRounds(const Ends& ends, int64_t consumers) {
  const int64_t rests = RestsTogether(ends, consumers);
  return WholeRounds(ends, consumers) + (rests + consumers - 1) / consumers;
}

int64_t LacksInLast(const Ends& ends, int64_t consumers) {
  return (consumers - RestsTogether(ends, consumers) % consumers) % consumers;
}

std::optional<TurnOf> RestTurn(const Ends& ends, int64_t consumers, Rests rests, int64_t round,
                               int64_t consumer) {
  int64_t place = (round - WholeRounds(ends, consumers)) * consumers + consumer;
  for (size_t p = 0; p < ends.size(); ++p) {
    const PartitionId partition(p + 1);
    const int64_t there =
        ends[p] % consumers + RestOfPartition(ends, consumers, rests, partition).pads;
    if (place < there) return TurnOf{partition, ends[p] / consumers + place / consumers};
    place -= there;
  }
  return std::nullopt;
}

int64_t ConsumerOf(Index index, int64_t consumers, std::optional<Index> end, const RestOf& rest) {
  if (!end || index < *end / consumers * consumers) return index % consumers;
  return (rest.before + index % consumers) % consumers;
}

Index IndexOf(int64_t turn, int64_t consumer, int64_t consumers, std::optional<Index> end,
              const RestOf& rest) {
  const Index first = turn * consumers;
  if (!end || turn < *end / consumers) return first + consumer;
  return first + ((consumer - rest.before) % consumers + consumers) % consumers;
}

}  // namespace penstock::protocol
