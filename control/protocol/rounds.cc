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

void Take(const RoundEvent& event, std::vector<PartitionRow>& rotation, int64_t& next) {
  const auto count = static_cast<int64_t>(rotation.size());
  switch (event.kind) {
    case RoundEvent::Kind::kJoins:
      rotation.push_back({event.partition, 0});
      return;
    case RoundEvent::Kind::kSkips:
      next = (next + 1) % count;
      return;
    case RoundEvent::Kind::kLeaves: {
      const auto at = std::find_if(
          rotation.begin(), rotation.end(),
          [&](const PartitionRow& entry) { return entry.partition == event.partition; });
      PENSTOCK_INVARIANT(at != rotation.end());
      const int64_t position = at - rotation.begin();
      rotation.erase(at);
      if (position < next) --next;
      if (next == count - 1) next = 0;
      return;
    }
  }
}

int64_t TotalRemainder(const Ends& ends, int64_t consumers) {
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
  if (next < 0 || next >= std::max<int64_t>(1, static_cast<int64_t>(rotation.size()))) return false;
  std::vector<PartitionId> present;
  for (const PartitionRow& entry : rotation) present.push_back(entry.partition);
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
    Take(*event, rotation_, next_);
  }
}

std::optional<PartitionRow> RoundCursor::Row(const Schedule& schedule) {
  Settle(schedule);
  if (rotation_.empty()) return std::nullopt;
  return rotation_[next()];
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
    if (const auto count = static_cast<int64_t>(rotation_.size()); count > 0) {
      for (PartitionRow& entry : rotation_) entry.row += rounds / count;
      for (int64_t i = 0; i < rounds % count; ++i) {
        ++rotation_[static_cast<size_t>((next_ + i) % count)].row;
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
  schedule.rotation = cursor.rotation();
  schedule.next = static_cast<int64_t>(cursor.next());
}

// --- Remainders ------------------------------------------------------------------

Remainder ComputeRemainder(const Ends& ends, int64_t consumers, RemainderPolicy policy,
                           PartitionId partition) {
  Remainder remainder;
  const size_t position = partition.value() - 1;
  for (size_t p = 0; p < position; ++p) remainder.before += ends[p] % consumers;
  if (policy != RemainderPolicy::kPad || ends[position] % consumers == 0) return remainder;
  const bool last = std::all_of(ends.begin() + static_cast<ptrdiff_t>(position) + 1, ends.end(),
                                [&](Index end) { return end % consumers == 0; });
  if (last) remainder.pads = LacksInLast(ends, consumers);
  return remainder;
}

int64_t WholeRounds(const Ends& ends, int64_t consumers) {
  int64_t rounds = 0;
  for (Index end : ends) rounds += end / consumers;
  return rounds;
}

int64_t AllRounds(const Ends& ends, int64_t consumers) {
  const int64_t remainder = TotalRemainder(ends, consumers);
  return WholeRounds(ends, consumers) + (remainder + consumers - 1) / consumers;
}

int64_t LacksInLast(const Ends& ends, int64_t consumers) {
  return (consumers - TotalRemainder(ends, consumers) % consumers) % consumers;
}

std::optional<PartitionRow> RemainderRow(const Ends& ends, int64_t consumers,
                                         RemainderPolicy policy, int64_t round, int64_t consumer) {
  int64_t place = (round - WholeRounds(ends, consumers)) * consumers + consumer;
  for (size_t p = 0; p < ends.size(); ++p) {
    const PartitionId partition(p + 1);
    const int64_t there =
        ends[p] % consumers + ComputeRemainder(ends, consumers, policy, partition).pads;
    if (place < there) return PartitionRow{partition, ends[p] / consumers + place / consumers};
    place -= there;
  }
  return std::nullopt;
}

int64_t ConsumerOf(Index index, int64_t consumers, std::optional<Index> end,
                   const Remainder& remainder) {
  if (!end || index < *end / consumers * consumers) return index % consumers;
  return (remainder.before + index % consumers) % consumers;
}

Index IndexOf(int64_t row, int64_t consumer, int64_t consumers, std::optional<Index> end,
              const Remainder& remainder) {
  const Index first = row * consumers;
  if (!end || row < *end / consumers) return first + consumer;
  return first + ((consumer - remainder.before) % consumers + consumers) % consumers;
}

}  // namespace penstock::protocol
