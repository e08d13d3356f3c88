// SPDX-License-Identifier: Apache-2.0
// The dispatcher's decisions about the rounds of a coordinated read.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/protocol/coordinator/decision_builder.h"
#include "control/protocol/coordinator/receive_budget.h"
#include "control/protocol/partial_rows.h"

namespace penstock::protocol {
namespace {

// The schedule forgets events only when it has at least this many. If it forgot them one by one,
// each would need a journal record.
constexpr size_t kEventsKept = 64;
// The maximum number of errors of rounds that were not yet delivered to all consumers. A correct
// consumer reports far fewer, because its receive budget limits the number of such rounds.
constexpr size_t kMostErrors = 1 << 14;

class Agreeing {
 public:
  Agreeing(const IterationRecord& record, IterationContext& context)
      : record_(record),
        context_(context),
        schedule_(record.rounds.schedule),
        rounds_(context.rounds) {
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
    NotifyConsumers(waits_for);
    AllowRows();
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
      if (reader.status == ReaderStatus::kLeft && HasAll(reader)) Finishes(reader.consumer);
      if (reader.status != ReaderStatus::kActive) continue;
      readers_[static_cast<size_t>(reader.consumer)] = static_cast<int64_t>(r);
    }
  }
  bool HasAll(const ReaderRecord& reader) const {
    const Ends& ends = record_.rounds.ends;
    if (ends.empty()) return false;
    int64_t committed = 0;  // one row per round, except a last round that is not filled
    for (const auto& [partition, rows] : reader.committed) committed += rows.size();
    if (record_.rounds.remainder_policy != RemainderPolicy::kPad &&
        LacksInLast(ends, consumers()) > 0)
      ++committed;
    return committed >= AllRounds(ends, consumers());
  }
  // Notes that the consumer has left with all its elements, so that no other consumer waits for it.
  void Finishes(int64_t consumer) {
    done_[static_cast<size_t>(consumer)] = true;
    ConsumerContext& context = rounds_.consumers[static_cast<size_t>(consumer)];
    context.reported = true;
    context.delivered = context.known = AllRounds(record_.rounds.ends, consumers());
  }
  const ReaderRecord& ReaderOf(size_t consumer) const {
    return record_.readers[static_cast<size_t>(readers_[consumer])];
  }

  // Returns the reason for which no round can be agreed on; empty if there is none. All consumers
  // must first report their elements, including elements from earlier lives of the dispatcher.
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
      if (!rounds_.consumers[c].reported && context_.broken != Broken::kAgreeBeforeReports) {
        const bool present = context_.present[static_cast<size_t>(readers_[c])];
        return absl::StrCat("consumer ", c,
                            present ? " has not reported its position" : " is not connected");
      }
    }
    return "";
  }

  // Checks that all consumers that start again start at the same round, and that no other consumer
  // is past it. If so, the consumers continue from there, and the function returns true.
  bool Forms(std::string& waits_for) {
    std::optional<int64_t> start;
    for (size_t c = 0; c < readers_.size(); ++c) {
      if (done_[c] || !ReaderOf(c).fresh) continue;
      if (start && *start != ReaderOf(c).start) {
        waits_for = absl::StrCat("consumer ", c, " begins at step ", ReaderOf(c).start,
                                 ", another consumer at step ", *start,
                                 ": restore all consumers from states of one step");
        return false;
      }
      start = ReaderOf(c).start;
    }
    if (!start || record_.finished) return false;  // a finished record no longer changes
    for (size_t c = 0; c < readers_.size() && context_.broken != Broken::kRejoinAnywhere; ++c) {
      if (done_[c] || ReaderOf(c).fresh) continue;
      if (rounds_.consumers[c].delivered > *start) {
        waits_for = absl::StrCat("consumer ", c, " is at step ", rounds_.consumers[c].delivered,
                                 ", but a consumer came back at step ", *start,
                                 ": restore all consumers from states of one step");
        return false;
      }
    }
    decision_.changes.push_back(ConsumersFormed{});
    return true;
  }

  void FindPlaces() {
    int64_t delivered = std::numeric_limits<int64_t>::max();
    for (const ConsumerContext& consumer : rounds_.consumers)
      delivered = std::min(delivered, consumer.delivered);
    if (!rounds_.agreed) {
      rounds_.agreed.emplace(schedule_);
      rounds_.agreed->MoveTo(schedule_, std::max(delivered, schedule_.first));
      rounds_.floor = rounds_.agreed;
      for (size_t p = 0; p < context_.partitions.size() && !schedule_.joined.empty(); ++p) {
        context_.partitions[p].rows_sent = Sent(p);
      }
    }
    const int64_t floor = std::clamp(delivered, rounds_.floor->round(), rounds_.agreed->round());
    if (floor == rounds_.floor->round()) return;
    rounds_.floor->MoveTo(schedule_, floor);
    std::erase_if(rounds_.errors, [&](const auto& error) {
      for (const PartitionRow& entry : rounds_.floor->rotation()) {
        if (entry.partition == error.first.first) return error.first.second < entry.row;
      }
      return false;
    });
  }

  // Returns the number of the partition's rows that consumers have reported.
  int64_t Sent(size_t partition) const {
    int64_t sent = 0;
    for (const auto& [reader, ack] : context_.partitions[partition].acks) {
      sent = std::max(sent, ack.reported.end());
    }
    return sent;
  }

  bool HasRow(size_t consumer, const PartitionRow& row) const {
    if (record_.finished || done_[consumer]) return true;
    const ReaderRecord& reader = ReaderOf(consumer);
    const AckStates& acks = context_.partitions[row.partition.value() - 1].acks;
    return Of(reader.committed, row.partition).Contains(row.row) ||
           Of(reader.final, row.partition).Contains(row.row) ||
           acks.Of(static_cast<size_t>(readers_[consumer])).reported.Contains(row.row);
  }
  bool ReceivedEverywhere(const PartitionRow& row) const {
    int64_t received = 0;
    for (size_t c = 0; c < readers_.size(); ++c) received += HasRow(c, row) ? 1 : 0;
    return received == consumers() || (received > 0 && context_.broken == Broken::kAgreeOnSome);
  }

  std::optional<Index> EndOf(PartitionId partition) const {
    if (auto end = record_.EndOf(partition)) return end;
    return context_.partitions[partition.value() - 1].at_end;
  }

  void Reschedule(RoundEvent::Kind kind, PartitionId partition) {
    decision_.changes.push_back(RoundsRescheduled{{rounds_.agreed->round(), kind, partition}});
  }

  // Limits the number of rounds that are agreed on but not delivered, because consumers may report
  // any number of elements as received.
  bool MayAgreeOnMore() const {
    return rounds_.agreed->round() - rounds_.floor->round() < kMaxPartialRows;
  }

  // Advances the agreed place over the rows that all consumers have received. Returns true if the
  // schedule must change first.
  bool Reschedules() {
    RoundCursor& agreed = *rounds_.agreed;
    int64_t known = 0;  // rounds below this are known to a consumer and must not change
    for (const ConsumerContext& consumer : rounds_.consumers)
      known = std::max(known, consumer.known);
    if (context_.broken == Broken::kReschedulePast) known = 0;
    while (true) {
      const bool open = agreed.AtTheEnd(schedule_) && agreed.round() >= known;
      if (open && JoinsOne()) return true;
      const std::optional<PartitionRow> row = agreed.Row(schedule_);
      if (!row) return AgreesOnRemainders(open);
      const std::optional<Index> end = EndOf(row->partition);
      if (end && row->row >= *end / consumers()) {
        if (open) Reschedule(RoundEvent::Kind::kLeaves, row->partition);
        return open;
      }
      if (ReceivedEverywhere(*row)) {
        if (!MayAgreeOnMore()) return false;
        agreed.Advance(schedule_);
        continue;
      }
      if (!open || !MaySkip(row->partition)) return false;
      ++rounds_.skips;
      Reschedule(RoundEvent::Kind::kSkips, row->partition);
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

  // A partition usually joins when all consumers have received its first row. With a budget of one
  // element, the consumers never have room for this row beside the rows of other partitions, so the
  // partition joins earlier.
  bool MayJoin(PartitionId partition) const {
    if (ReceivedEverywhere({partition, 0})) return true;
    return MinReceiveBudget(record_, context_) == 1 && !rounds_.agreed->rotation().empty() &&
           !record_.partition(partition).collecting();
  }

  bool MaySkip(PartitionId late) const {
    std::vector<PartitionRow> rotation = rounds_.agreed->rotation();
    if (rotation.size() < 2) return false;
    size_t at = rounds_.agreed->next();
    for (int64_t behind = 0; behind < kRoundsBeforeSkip;) {
      at = (at + 1) % rotation.size();
      if (rotation[at].partition == late) continue;
      if (!ReceivedEverywhere(rotation[at])) return false;
      ++rotation[at].row;
      ++behind;
    }
    return true;
  }

  // Called when no partition has a whole row left. Plans the remainders and returns true, or agrees
  // on their rounds and returns false.
  bool AgreesOnRemainders(bool open) {
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
      decision_.changes.push_back(RemaindersPlanned{std::move(ends)});
      return true;
    }
    RoundCursor& agreed = *rounds_.agreed;
    while (agreed.round() < AllRounds(ends, consumers()) && MayAgreeOnMore()) {
      for (int64_t c = 0; c < consumers(); ++c) {
        const auto row =
            RemainderRow(ends, consumers(), record_.rounds.remainder_policy, agreed.round(), c);
        if (row && !HasRow(static_cast<size_t>(c), *row)) return false;
      }
      agreed.Advance(schedule_);
    }
    return false;
  }

  Agreed::Round RoundFor(int64_t consumer, const std::optional<PartitionRow>& row, int64_t number) {
    Agreed::Round round{.row = row};
    if (!row) {
      const Ends& ends = record_.rounds.ends;
      const RemainderPolicy policy = record_.rounds.remainder_policy;
      round.row = RemainderRow(ends, consumers(), policy, number, consumer);
      const int64_t lacks =
          number + 1 == AllRounds(ends, consumers()) ? LacksInLast(ends, consumers()) : 0;
      round.unfilled = lacks > 0 && policy != RemainderPolicy::kPad;
      round.pad = lacks > 0 && policy == RemainderPolicy::kPad && consumer >= consumers() - lacks;
    }
    for (int64_t c = 0; c < consumers() && !round.error; ++c) {
      const std::optional<PartitionRow> its =
          row ? row
              : RemainderRow(record_.rounds.ends, consumers(), record_.rounds.remainder_policy,
                             number, c);
      if (!its) continue;
      const auto error = rounds_.errors.find({its->partition, its->row});
      if (error == rounds_.errors.end()) continue;
      if (!row && error->second.first != c) continue;
      round.error = error->second.second;
      round.consumer = error->second.first;
    }
    return round;
  }

  // Tells each consumer the rounds that it does not know yet, and what blocks further rounds.
  void NotifyConsumers(const std::string& waits_for) {
    const bool news = waits_for != rounds_.waits_for;
    rounds_.waits_for = waits_for;
    for (size_t c = 0; c < readers_.size(); ++c) {
      if (readers_[c] < 0 || !context_.present[static_cast<size_t>(readers_[c])]) continue;
      ToClient<Agreed> agreed{
          {.waits_for = waits_for}, ReaderOf(c).client, ReaderOf(c).incarnation};
      std::optional<RoundCursor>& announced = rounds_.consumers[c].announced;
      if (waits_for.empty() && announced && rounds_.agreed) {
        agreed.first = announced->round();
        while (announced->round() < rounds_.agreed->round()) {
          const std::optional<PartitionRow> row = announced->Row(schedule_);
          agreed.rounds.push_back(RoundFor(static_cast<int64_t>(c), row, announced->round()));
          announced->Advance(schedule_);
        }
        rounds_.consumers[c].known = std::max(rounds_.consumers[c].known, announced->round());
      }
      if (news || !agreed.rounds.empty()) decision_.messages.push_back(std::move(agreed));
    }
  }

  void AllowRows() {
    const std::vector<int64_t> rows = RowsWithinBudget(record_, context_);
    for (size_t p = 0; p < record_.partitions.size(); ++p) {
      const PartitionRecord& partition = record_.partitions[p];
      if (partition.collecting()) continue;
      PartitionContext& partition_context = context_.partitions[p];
      const PartitionId id(p + 1);
      const bool remainder = !partition_context.remainder_announced && RemainderMayGo(id);
      if (!remainder && !IsWorthSending(id, rows[p])) continue;
      NoteAllowed(rows[p], partition_context);
      partition_context.remainder_announced |= remainder;
      protocol::AllowRows allow{partition.worker, id, partition.placement,
                                partition_context.rows_allowed, std::nullopt};
      if (partition_context.remainder_announced) allow.remainder = record_.RemainderOf(id);
      decision_.messages.push_back(std::move(allow));
    }
  }
  // Returns whether it is time to send AllowRows. If there is room for many rows, it is cheaper to
  // allow a quarter of them in one message, as long as the partition still has rows that it may
  // send.
  bool IsWorthSending(PartitionId partition, int64_t rows) const {
    const int64_t announced = context_.partitions[partition.value() - 1].rows_allowed;
    if (rows <= announced || !rounds_.agreed) return rows > announced;
    const std::vector<PartitionRow>& rotation = rounds_.agreed->rotation();
    for (const PartitionRow& entry : rotation) {
      if (entry.partition != partition) continue;
      const int64_t share =
          MinReceiveBudget(record_, context_) / static_cast<int64_t>(rotation.size());
      return rows - announced >= share / 4 || announced <= entry.row;
    }
    return true;
  }
  // Returns whether the rounds of the partition's remainder are among the next rounds that the
  // budget allows.
  bool RemainderMayGo(PartitionId partition) const {
    if (!record_.EndOf(partition) || !rounds_.floor) return false;
    const int64_t first = WholeRounds(record_.rounds.ends, consumers()) +
                          record_.RemainderOf(partition).before / consumers();
    return first < rounds_.floor->round() + MinReceiveBudget(record_, context_);
  }

  void Forget() {
    if (schedule_.events.size() < kEventsKept || record_.finished) return;
    std::vector<int64_t> by_consumer(static_cast<size_t>(consumers()), 0);
    for (const ReaderRecord& reader : record_.readers) {
      if (reader.consumer < 0) continue;
      // Rows are delivered in the order of rounds, one per round.
      for (const auto& [partition, rows] : reader.committed) {
        by_consumer[static_cast<size_t>(reader.consumer)] += rows.size();
      }
    }
    int64_t committed = *std::min_element(by_consumer.begin(), by_consumer.end());
    if (rounds_.floor) committed = std::min(committed, rounds_.floor->round());
    if (committed <= schedule_.events[kEventsKept / 2].round) return;
    decision_.changes.push_back(RoundsForgotten{committed});
  }

  const IterationRecord& record_;
  IterationContext& context_;
  const Schedule& schedule_;
  RoundsContext& rounds_;
  std::vector<int64_t> readers_;  // by consumer: position in the record; -1: none
  std::vector<bool> done_;        // by consumer
  Decision decision_;
};

}  // namespace

Decision AgreeOnRounds(const IterationRecord& record, IterationContext& context) {
  if (!record.coordinated()) return {};
  return Agreeing(record, context).Decide();
}

namespace {

// Returns the active consumer with this client and incarnation; null if there is none.
const ReaderRecord* FindActiveConsumer(const IterationRecord& record, ClientId client,
                                       Incarnation incarnation) {
  const auto found = record.FindReader(client);
  if (!found) return nullptr;
  const ReaderRecord& reader = record.readers[*found];
  const bool active = reader.status == ReaderStatus::kActive && reader.incarnation == incarnation;
  return active && reader.consumer >= 0 ? &reader : nullptr;
}

}  // namespace

absl::Status OnRoundErrors(const IterationRecord& record, IterationContext& context,
                           ClientId client, Incarnation incarnation,
                           absl::Span<const RoundError> errors) {
  const ReaderRecord* reader = FindActiveConsumer(record, client, incarnation);
  if (reader == nullptr) return absl::OkStatus();
  for (const RoundError& error : errors) {
    if (!record.Has(error.at.partition)) {
      return absl::InvalidArgumentError(
          absl::StrCat("consumer ", reader->consumer, " reports an error of ",
                       ToString(error.at.partition), ", which does not belong to this iteration"));
    }
    context.rounds.errors.try_emplace({error.at.partition, error.at.row},
                                      std::pair(reader->consumer, error));
    if (context.rounds.errors.size() > kMostErrors) {
      return absl::InvalidArgumentError(
          absl::StrCat("consumer ", reader->consumer, " reports errors of more than ", kMostErrors,
                       " rounds that were not delivered to all consumers"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRoundsReport(const IterationRecord& record, const IterationContext& context,
                               ClientId client, Incarnation incarnation,
                               const RoundsReport& report) {
  const ReaderRecord* reader = FindActiveConsumer(record, client, incarnation);
  if (reader == nullptr || record.finished) return absl::OkStatus();
  const auto number = static_cast<size_t>(reader->consumer);
  if (number >= context.rounds.consumers.size() || !context.rounds.consumers[number].announced) {
    return absl::OkStatus();
  }
  const int64_t announced = context.rounds.consumers[number].announced->round();
  if (report.known <= announced) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("consumer ", number, " claims to know ",
                                                 report.known, " rounds, but was sent only ",
                                                 announced));
}

Decision OnRoundsReport(const IterationRecord& record, IterationContext& context, ClientId client,
                        Incarnation incarnation, const RoundsReport& report) {
  const ReaderRecord* reader = FindActiveConsumer(record, client, incarnation);
  if (reader == nullptr) return {};
  context.rounds.consumers.resize(static_cast<size_t>(record.rounds.consumers));
  ConsumerContext& consumer = context.rounds.consumers[static_cast<size_t>(reader->consumer)];
  consumer.reported = true;
  consumer.delivered = std::max(consumer.delivered, report.delivered);
  consumer.known = std::max(consumer.known, report.known);
  if (report.receive_budget > 0)
    consumer.receive_budget = std::min(report.receive_budget, kMaxPartialRows);
  if (!consumer.announced) {
    consumer.announced.emplace(record.rounds.schedule);
    const int64_t from = std::max(report.known, record.rounds.schedule.first);
    consumer.announced->MoveTo(record.rounds.schedule, from);
  }
  return {};
}

}  // namespace penstock::protocol
