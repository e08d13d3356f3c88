// SPDX-License-Identifier: Apache-2.0
// What the dispatcher decides about the rounds of a coordinated read.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/protocol/deciding.h"
#include "control/protocol/loose_turns.h"
#include "control/protocol/rounds_room.h"

namespace penstock::protocol {
namespace {

// Events of the schedule that are kept at least; forgetting them one by one would be
// a record of the journal each.
constexpr size_t kEventsKept = 64;
// Far more than turns that consumers have room for: errors of rounds that not all have taken.
constexpr size_t kMostErrors = 1 << 14;

class Agreeing {
 public:
  Agreeing(const IterationRecord& record, Desk& desk)
      : record_(record), desk_(desk), schedule_(record.rounds.schedule), rounds_(desk.rounds) {
    rounds_.consumers.resize(static_cast<size_t>(record.rounds.consumers));
  }

  Decision Decide() {
    FindReaders();
    std::string waits_for = WhatIsMissing();
    if (waits_for.empty()) {
      if (Forms(waits_for)) return std::move(decision_);
      if (waits_for.empty()) {
        FindPlaces();
        if (Reschedules()) return std::move(decision_);
      }
    }
    Tell(waits_for);
    AllowTurns();
    Forget();
    return std::move(decision_);
  }

 private:
  int64_t consumers() const { return record_.rounds.consumers; }

  void FindReaders() {
    readers_.assign(static_cast<size_t>(consumers()), -1);
    done_.assign(static_cast<size_t>(consumers()), false);
    for (size_t r = 0; r < record_.readers.size(); ++r) {
      const ReaderRecord& reader = record_.readers[r];
      if (reader.consumer < 0) continue;
      if (reader.standing == Standing::kLeft && HasAll(reader)) Finishes(reader.consumer);
      if (reader.standing != Standing::kLiving) continue;
      readers_[static_cast<size_t>(reader.consumer)] = static_cast<int64_t>(r);
    }
  }
  bool HasAll(const ReaderRecord& reader) const {
    const Ends& ends = record_.rounds.ends;
    if (ends.empty()) return false;
    int64_t kept = 0;  // one of each round, but for a last one that is not filled
    for (const IndexSet& turns : reader.kept) kept += turns.size();
    if (record_.rounds.rests != Rests::kPad && LacksInLast(ends, consumers()) > 0) ++kept;
    return kept >= AllRounds(ends, consumers());
  }
  // It has left with all it was to have, and need not be waited for.
  void Finishes(int64_t consumer) {
    done_[static_cast<size_t>(consumer)] = true;
    ConsumerDesk& desk = rounds_.consumers[static_cast<size_t>(consumer)];
    desk.said = true;
    desk.taken = desk.heard = AllRounds(record_.rounds.ends, consumers());
  }
  const ReaderRecord& ReaderOf(size_t consumer) const {
    return record_.readers[static_cast<size_t>(readers_[consumer])];
  }

  // Nothing is agreed on before all have said what they have: what they were told by
  // an earlier life of the dispatcher is in that.
  std::string WhatIsMissing() const {
    for (size_t c = 0; c < readers_.size(); ++c) {
      if (done_[c]) continue;
      if (readers_[c] < 0) {
        const bool before = std::any_of(
            record_.readers.begin(), record_.readers.end(),
            [&](const ReaderRecord& its) { return its.consumer == static_cast<int64_t>(c); });
        return absl::StrCat("consumer ", c,
                            before ? " is gone and has not come back" : " has not joined");
      }
      if (!rounds_.consumers[c].said && desk_.broken != Broken::kAgreeUnheard) {
        const bool present = desk_.present[static_cast<size_t>(readers_[c])];
        return absl::StrCat("consumer ", c,
                            present ? " has not said where it is" : " is not connected");
      }
    }
    return "";
  }

  // Those that begin anew do so at one round, which none of the others is past.
  bool Forms(std::string& waits_for) {
    std::optional<int64_t> start;
    for (size_t c = 0; c < readers_.size(); ++c) {
      if (done_[c] || !ReaderOf(c).fresh) continue;
      if (start && *start != ReaderOf(c).start) {
        waits_for =
            absl::StrCat("consumer ", c, " begins at step ", ReaderOf(c).start, ", another at ",
                         *start, ": restore all consumers from states of one step");
        return false;
      }
      start = ReaderOf(c).start;
    }
    if (!start || record_.finished) return false;  // a finished one changes no more
    for (size_t c = 0; c < readers_.size() && desk_.broken != Broken::kRejoinAnywhere; ++c) {
      if (done_[c] || ReaderOf(c).fresh) continue;
      if (rounds_.consumers[c].taken > *start) {
        waits_for = absl::StrCat("consumer ", c, " is at step ", rounds_.consumers[c].taken,
                                 ", one that came back at ", *start,
                                 ": restore all consumers from states of one step");
        return false;
      }
    }
    decision_.changes.push_back(ConsumersFormed{});
    return true;
  }

  void FindPlaces() {
    int64_t taken = std::numeric_limits<int64_t>::max();
    for (const ConsumerDesk& consumer : rounds_.consumers) taken = std::min(taken, consumer.taken);
    if (!rounds_.agreed) {
      rounds_.agreed.emplace(schedule_);
      rounds_.agreed->MoveTo(schedule_, std::max(taken, schedule_.first));
      rounds_.floor = rounds_.agreed;
      for (size_t p = 0; p < desk_.partitions.size() && !schedule_.joined.empty(); ++p) {
        desk_.partitions[p].turns_sent = Sent(p);
      }
    }
    const int64_t floor = std::clamp(taken, rounds_.floor->round(), rounds_.agreed->round());
    if (floor == rounds_.floor->round()) return;
    rounds_.floor->MoveTo(schedule_, floor);
    std::erase_if(rounds_.errors, [&](const auto& error) {
      for (const TurnOf& lane : rounds_.floor->lanes()) {
        if (lane.partition == error.first.first) return error.first.second < lane.turn;
      }
      return false;
    });
  }

  // Turns of a partition that consumers are known to have.
  int64_t Sent(size_t partition) const {
    int64_t sent = 0;
    for (const Heard& heard : desk_.partitions[partition].readers) {
      sent = std::max(sent, heard.has.end());
    }
    return sent;
  }

  bool HasTurn(size_t consumer, const TurnOf& turn) const {
    if (record_.finished || done_[consumer]) return true;
    const ReaderRecord& reader = ReaderOf(consumer);
    const auto& heard = desk_.partitions[turn.partition.value() - 1].readers;
    return Of(reader.kept, turn.partition).Contains(turn.turn) ||
           Of(reader.final, turn.partition).Contains(turn.turn) ||
           heard[static_cast<size_t>(readers_[consumer])].has.Contains(turn.turn);
  }
  bool LandedEverywhere(const TurnOf& turn) const {
    int64_t landed = 0;
    for (size_t c = 0; c < readers_.size(); ++c) landed += HasTurn(c, turn) ? 1 : 0;
    return landed == consumers() || (landed > 0 && desk_.broken == Broken::kAgreeOnSome);
  }

  std::optional<Index> EndOf(PartitionId partition) const {
    if (auto end = record_.EndOf(partition)) return end;
    return desk_.partitions[partition.value() - 1].at_end;
  }

  void Reschedule(RoundEvent::Kind kind, PartitionId partition) {
    decision_.changes.push_back(RoundsRescheduled{{rounds_.agreed->round(), kind, partition}});
  }

  // What landed is what consumers say: no more is agreed on before they have taken some.
  bool MayAgreeOnMore() const {
    return rounds_.agreed->round() - rounds_.floor->round() < kMostLooseTurns;
  }

  // Goes on as far as turns have landed. True: the schedule is altered first.
  bool Reschedules() {
    RoundCursor& agreed = *rounds_.agreed;
    int64_t heard = 0;  // nobody's rounds are altered behind his back
    for (const ConsumerDesk& consumer : rounds_.consumers) heard = std::max(heard, consumer.heard);
    if (desk_.broken == Broken::kReschedulePast) heard = 0;
    while (true) {
      const bool open = agreed.AtTheEnd(schedule_) && agreed.round() >= heard;
      if (open && JoinsOne()) return true;
      const std::optional<TurnOf> turn = agreed.Turn(schedule_);
      if (!turn) return AgreesOnRests(open);
      const std::optional<Index> end = EndOf(turn->partition);
      if (end && turn->turn >= *end / consumers()) {
        if (open) Reschedule(RoundEvent::Kind::kLeaves, turn->partition);
        return open;
      }
      if (LandedEverywhere(*turn)) {
        if (!MayAgreeOnMore()) return false;
        agreed.Advance(schedule_);
        continue;
      }
      if (!open || !MaySkip(turn->partition)) return false;
      ++rounds_.skips;
      Reschedule(RoundEvent::Kind::kSkips, turn->partition);
      return true;
    }
  }

  bool JoinsOne() {
    for (size_t p = 0; p < record_.partitions.size(); ++p) {
      const PartitionId partition(p + 1);
      if (schedule_.Knows(partition) || !MayJoin(partition)) continue;
      if (const auto end = EndOf(partition); end && *end < consumers()) continue;
      Reschedule(RoundEvent::Kind::kJoins, partition);
      return true;
    }
    return false;
  }

  // With room for one element, that is of the others' turns.
  bool MayJoin(PartitionId partition) const {
    if (LandedEverywhere({partition, 0})) return true;
    return RoomOf(record_, desk_) == 1 && !rounds_.agreed->lanes().empty() &&
           !record_.partition(partition).collecting();
  }

  bool MaySkip(PartitionId late) const {
    std::vector<TurnOf> lanes = rounds_.agreed->lanes();
    if (lanes.size() < 2) return false;
    size_t at = rounds_.agreed->next();
    for (int64_t behind = 0; behind < kRoundsBeforeSkip;) {
      at = (at + 1) % lanes.size();
      if (lanes[at].partition == late) continue;
      if (!LandedEverywhere(lanes[at])) return false;
      ++lanes[at].turn;
      ++behind;
    }
    return true;
  }

  // No partition has a turn left: plans the rests (true), or agrees on their rounds.
  bool AgreesOnRests(bool open) {
    Ends ends = record_.rounds.ends;
    if (ends.empty()) {
      if (!open) return false;
      for (size_t p = 0; p < record_.partitions.size(); ++p) {
        const PartitionId partition(p + 1);
        const std::optional<Index> end = EndOf(partition);
        if (!end || (*end >= consumers() && !schedule_.Knows(partition))) return false;
        ends.push_back(*end);
      }
      if (ends.empty()) return false;
      decision_.changes.push_back(RestsPlanned{std::move(ends)});
      return true;
    }
    RoundCursor& agreed = *rounds_.agreed;
    while (agreed.round() < AllRounds(ends, consumers()) && MayAgreeOnMore()) {
      for (int64_t c = 0; c < consumers(); ++c) {
        const auto turn = RestTurn(ends, consumers(), record_.rounds.rests, agreed.round(), c);
        if (turn && !HasTurn(static_cast<size_t>(c), *turn)) return false;
      }
      agreed.Advance(schedule_);
    }
    return false;
  }

  Agreed::Round RoundFor(int64_t consumer, const std::optional<TurnOf>& turn, int64_t number) {
    Agreed::Round round{.turn = turn};
    if (!turn) {
      const Ends& ends = record_.rounds.ends;
      const Rests rests = record_.rounds.rests;
      round.turn = RestTurn(ends, consumers(), rests, number, consumer);
      const int64_t lacks =
          number + 1 == AllRounds(ends, consumers()) ? LacksInLast(ends, consumers()) : 0;
      round.rest = lacks > 0 && rests != Rests::kPad;
      round.pad = lacks > 0 && rests == Rests::kPad && consumer >= consumers() - lacks;
    }
    for (int64_t c = 0; c < consumers() && !round.error; ++c) {
      const std::optional<TurnOf> its =
          turn ? turn : RestTurn(record_.rounds.ends, consumers(), record_.rounds.rests, number, c);
      if (!its) continue;
      const auto error = rounds_.errors.find({its->partition, its->turn});
      if (error == rounds_.errors.end()) continue;
      if (!turn && error->second.first != c) continue;
      round.error = error->second.second;
      round.consumer = error->second.first;
    }
    return round;
  }

  // What each consumer has not been told of, and who is waited for.
  void Tell(const std::string& waits_for) {
    const bool news = waits_for != rounds_.waits_for;
    rounds_.waits_for = waits_for;
    for (size_t c = 0; c < readers_.size(); ++c) {
      if (readers_[c] < 0 || !desk_.present[static_cast<size_t>(readers_[c])]) continue;
      Agreed agreed{.client = ReaderOf(c).client,
                    .incarnation = ReaderOf(c).incarnation,
                    .waits_for = waits_for};
      std::optional<RoundCursor>& told = rounds_.consumers[c].told;
      if (waits_for.empty() && told && rounds_.agreed) {
        agreed.first = told->round();
        while (told->round() < rounds_.agreed->round()) {
          const std::optional<TurnOf> turn = told->Turn(schedule_);
          agreed.rounds.push_back(RoundFor(static_cast<int64_t>(c), turn, told->round()));
          told->Advance(schedule_);
        }
        rounds_.consumers[c].heard = std::max(rounds_.consumers[c].heard, told->round());
      }
      if (news || !agreed.rounds.empty()) decision_.messages.push_back(std::move(agreed));
    }
  }

  void AllowTurns() {
    const std::vector<int64_t> turns = TurnsWithinRoom(record_, desk_);
    for (size_t p = 0; p < record_.partitions.size(); ++p) {
      const PartitionRecord& partition = record_.partitions[p];
      if (partition.collecting()) continue;
      PartitionDesk& on_desk = desk_.partitions[p];
      const PartitionId id(p + 1);
      const bool rest = !on_desk.rest_told && RestMayGo(id);
      if (!rest && !IsWorthSaying(id, turns[p])) continue;
      NoteAllowed(turns[p], on_desk);
      on_desk.rest_told |= rest;
      protocol::AllowTurns allow{partition.worker, id, partition.placement, on_desk.turns_allowed,
                                 std::nullopt};
      if (on_desk.rest_told) allow.rest = record_.RestsOf(id);
      decision_.messages.push_back(std::move(allow));
    }
  }
  // Where there is room for many, word of a quarter of them at once is as good and less to
  // say, while the partition still has turns that it may send.
  bool IsWorthSaying(PartitionId partition, int64_t turns) const {
    const int64_t told = desk_.partitions[partition.value() - 1].turns_allowed;
    if (turns <= told || !rounds_.agreed) return turns > told;
    const std::vector<TurnOf>& lanes = rounds_.agreed->lanes();
    for (const TurnOf& lane : lanes) {
      if (lane.partition != partition) continue;
      const int64_t share = RoomOf(record_, desk_) / static_cast<int64_t>(lanes.size());
      return turns - told >= share / 4 || told <= lane.turn;
    }
    return true;
  }
  // The rounds of its rest are among the next for which there is room.
  bool RestMayGo(PartitionId partition) const {
    if (!record_.EndOf(partition) || !rounds_.floor) return false;
    const int64_t first = WholeRounds(record_.rounds.ends, consumers()) +
                          record_.RestsOf(partition).before / consumers();
    return first < rounds_.floor->round() + RoomOf(record_, desk_);
  }

  void Forget() {
    if (schedule_.events.size() < kEventsKept || record_.finished) return;
    std::vector<int64_t> by_consumer(static_cast<size_t>(consumers()), 0);
    for (const ReaderRecord& reader : record_.readers) {
      if (reader.consumer < 0) continue;
      // Taken in the order of rounds, one each.
      for (const IndexSet& turns : reader.kept) {
        by_consumer[static_cast<size_t>(reader.consumer)] += turns.size();
      }
    }
    int64_t kept = *std::min_element(by_consumer.begin(), by_consumer.end());
    if (rounds_.floor) kept = std::min(kept, rounds_.floor->round());
    if (kept <= schedule_.events[kEventsKept / 2].round) return;
    decision_.changes.push_back(RoundsForgotten{kept});
  }

  const IterationRecord& record_;
  Desk& desk_;
  const Schedule& schedule_;
  RoundsDesk& rounds_;
  std::vector<int64_t> readers_;  // by consumer: position in the record; -1: none
  std::vector<bool> done_;        // by consumer
  Decision decision_;
};

}  // namespace

Decision AgreeOnRounds(const IterationRecord& record, Desk& desk) {
  if (!record.coordinated()) return {};
  return Agreeing(record, desk).Decide();
}

namespace {

// The living consumer of that name and process; null: there is none.
const ReaderRecord* LivingConsumer(const IterationRecord& record, ClientId client,
                                   Incarnation incarnation) {
  const auto found = record.FindReader(client);
  if (!found) return nullptr;
  const ReaderRecord& reader = record.readers[*found];
  const bool living = reader.standing == Standing::kLiving && reader.incarnation == incarnation;
  return living && reader.consumer >= 0 ? &reader : nullptr;
}

}  // namespace

absl::Status OnRoundErrors(const IterationRecord& record, Desk& desk, ClientId client,
                           Incarnation incarnation, absl::Span<const RoundError> errors) {
  const ReaderRecord* reader = LivingConsumer(record, client, incarnation);
  if (reader == nullptr) return absl::OkStatus();
  for (const RoundError& error : errors) {
    if (!record.Has(error.at.partition)) {
      return absl::InvalidArgumentError(
          absl::StrCat("consumer ", reader->consumer, " has an error of ",
                       ToString(error.at.partition), ", which is none of this iteration's"));
    }
    desk.rounds.errors.try_emplace({error.at.partition, error.at.turn},
                                   std::pair(reader->consumer, error));
    if (desk.rounds.errors.size() > kMostErrors) {
      return absl::InvalidArgumentError(absl::StrCat("consumer ", reader->consumer,
                                                     " has errors of more than ", kMostErrors,
                                                     " rounds that not all consumers have taken"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRoundsReport(const IterationRecord& record, const Desk& desk, ClientId client,
                               Incarnation incarnation, const RoundsReport& report) {
  const ReaderRecord* reader = LivingConsumer(record, client, incarnation);
  if (reader == nullptr || record.finished) return absl::OkStatus();
  const auto number = static_cast<size_t>(reader->consumer);
  if (number >= desk.rounds.consumers.size() || !desk.rounds.consumers[number].told) {
    return absl::OkStatus();
  }
  const int64_t told = desk.rounds.consumers[number].told->round();
  if (report.heard <= told) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("consumer ", number, " says that it knows of ",
                                                 report.heard, " rounds, and was told of ", told));
}

Decision OnRoundsReport(const IterationRecord& record, Desk& desk, ClientId client,
                        Incarnation incarnation, const RoundsReport& report) {
  const ReaderRecord* reader = LivingConsumer(record, client, incarnation);
  if (reader == nullptr) return {};
  desk.rounds.consumers.resize(static_cast<size_t>(record.rounds.consumers));
  ConsumerDesk& consumer = desk.rounds.consumers[static_cast<size_t>(reader->consumer)];
  consumer.said = true;
  consumer.taken = std::max(consumer.taken, report.taken);
  consumer.heard = std::max(consumer.heard, report.heard);
  if (report.room > 0) consumer.room = std::min(report.room, kMostLooseTurns);
  if (!consumer.told) {
    consumer.told.emplace(record.rounds.schedule);
    const int64_t from = std::max(report.heard, record.rounds.schedule.first);
    consumer.told->MoveTo(record.rounds.schedule, from);
  }
  return {};
}

}  // namespace penstock::protocol
