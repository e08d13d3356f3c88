// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/coordinator/receive_budget.h"

#include <algorithm>
#include <optional>

namespace penstock::protocol {
namespace {

class RowAllowance {
 public:
  RowAllowance(const IterationRecord& record, const IterationContext& context)
      : record_(record),
        context_(context),
        schedule_(record.rounds.schedule),
        budget_(MinReceiveBudget(record, context)) {}

  std::vector<int64_t> Rows() {
    const RoundsContext& rounds = context_.rounds;
    for (const PartitionContext& partition : context_.partitions)
      rows_.push_back(partition.rows_sent);
    if (!rounds.agreed && !schedule_.joined.empty()) return rows_;  // no place agreed on yet
    RoundCursor agreed = rounds.agreed.value_or(RoundCursor(schedule_));
    agreed.AtTheEnd(schedule_);
    if (agreed.rotation().empty()) {
      BeginAll();
    } else {
      const int64_t joining = BeginOne(agreed);
      GoOn(agreed, std::max<int64_t>(1, budget_ - joining));
    }
    for (size_t p = 0; p < rows_.size(); ++p) {
      if (HasLeft(p, agreed) || IsRemainderOnly(p)) rows_[p] = kAllRows;
    }
    return std::move(rows_);
  }

 private:
  std::optional<Index> EndOf(size_t p) const {
    if (const auto end = record_.EndOf(PartitionId(p + 1))) return end;
    return context_.partitions[p].at_end;
  }
  bool IsOver(size_t p, int64_t row) const {
    const std::optional<Index> end = EndOf(p);
    return end && row >= *end / record_.rounds.consumers;
  }
  // Returns whether the partition has no row in the schedule yet, but will have one.
  bool IsToJoin(size_t p) const { return !schedule_.Knows(PartitionId(p + 1)) && !IsOver(p, 0); }
  bool HasLeft(size_t p, const RoundCursor& agreed) const {
    const PartitionId partition(p + 1);
    if (!schedule_.Knows(partition)) return false;
    return JoinedBefore(partition, agreed.round()) &&
           std::none_of(agreed.rotation().begin(), agreed.rotation().end(),
                        [&](const PartitionRow& entry) { return entry.partition == partition; });
  }
  bool IsRemainderOnly(size_t p) const {
    return !schedule_.Knows(PartitionId(p + 1)) && IsOver(p, 0);
  }
  // Returns the number of elements of joining partitions that a consumer may have.
  int64_t Begun() const {
    int64_t begun = 0;
    for (size_t p = 0; p < rows_.size(); ++p) begun += IsToJoin(p) && rows_[p] > 0 ? 1 : 0;
    return begun;
  }
  bool MayBegin(size_t p) const {
    return IsToJoin(p) && rows_[p] == 0 && !record_.partitions[p].collecting();
  }

  bool IsAllowed(const PartitionRow& row) const {
    const size_t p = row.partition.value() - 1;
    return row.row < rows_[p] || IsOver(p, row.row);
  }

  void BeginAll() {
    int64_t outstanding = Begun() + Outstanding();
    for (size_t p = 0; p < rows_.size() && outstanding < budget_; ++p) {
      if (!MayBegin(p)) continue;
      rows_[p] = 1;
      ++outstanding;
    }
  }

  // Lets joining partitions begin one after the other, while partitions in the schedule go on. The
  // next row of the partitions in the schedule has precedence. Returns the number of elements of
  // the budget that the joining partition needs or will need. With a budget of one element, a
  // partition joins before it has sent any element (rounds_coordinator.cc).
  int64_t BeginOne(const RoundCursor& agreed) {
    if (const int64_t begun = Begun(); begun > 0 || budget_ == 1) return begun;
    for (size_t p = 0; p < rows_.size(); ++p) {
      if (!MayBegin(p)) continue;
      const PartitionRow& next = agreed.rotation()[agreed.next()];
      if (Outstanding() < budget_ && IsAllowed(next)) rows_[p] = 1;
      return 1;
    }
    return 0;
  }

  // Returns the number of undelivered elements that a consumer may have from the partitions in the
  // schedule.
  int64_t Outstanding() const {
    const RoundsContext& rounds = context_.rounds;
    if (!rounds.floor) return 0;  // no partition has a row yet
    int64_t outstanding = 0;
    for (size_t p = 0; p < rows_.size(); ++p) {
      const PartitionId partition(p + 1);
      if (!schedule_.Knows(partition)) continue;
      int64_t rows = rows_[p];
      if (const auto end = EndOf(p)) rows = std::min(rows, *end / record_.rounds.consumers);
      int64_t delivered = 0;  // 0: the partition joined after the floor
      bool there = false;
      for (const PartitionRow& entry : rounds.floor->rotation()) {
        if (entry.partition != partition) continue;
        delivered = entry.row;
        there = true;
      }
      if (!there && JoinedBefore(partition, rounds.floor->round())) continue;  // it left later
      outstanding += std::max<int64_t>(0, rows - delivered);
    }
    return outstanding;
  }
  bool JoinedBefore(PartitionId partition, int64_t round) const {
    return std::none_of(schedule_.events.begin(), schedule_.events.end(), [&](const auto& event) {
      return event.kind == RoundEvent::Kind::kJoins && event.partition == partition &&
             event.round >= round;
    });
  }

  // Allows rows in the order of rounds. The next row for which consumers wait is allowed even if
  // elements that were received before a failure take up the whole budget.
  void GoOn(const RoundCursor& agreed, int64_t most) {
    const std::vector<PartitionRow>& rotation = agreed.rotation();
    const size_t count = rotation.size();
    int64_t outstanding = Outstanding();
    bool waited_for = agreed.round() == context_.rounds.floor->round();
    size_t over = 0;  // how many consecutive entries are over
    for (size_t i = 0; (outstanding < most || waited_for) && over < count; ++i) {
      const PartitionRow& entry = rotation[(agreed.next() + i) % count];
      const int64_t row = entry.row + static_cast<int64_t>(i / count);
      const size_t p = entry.partition.value() - 1;
      if (IsOver(p, row)) {
        ++over;
        continue;
      }
      over = 0;
      waited_for = false;
      if (row < rows_[p]) continue;
      rows_[p] = row + 1;
      ++outstanding;
    }
  }

  const IterationRecord& record_;
  const IterationContext& context_;
  const Schedule& schedule_;
  const int64_t budget_;
  std::vector<int64_t> rows_;
};

}  // namespace

int64_t MinReceiveBudget(const IterationRecord& record, const IterationContext& context) {
  const std::vector<ConsumerContext>& consumers = context.rounds.consumers;
  if (static_cast<int64_t>(consumers.size()) < record.rounds.consumers) return 1;
  int64_t budget =
      kRowsAhead * std::max<int64_t>(1, static_cast<int64_t>(record.partitions.size()));
  for (size_t c = 0; c < consumers.size(); ++c) {
    const int64_t its = !consumers[c].reported ? 1 : consumers[c].receive_budget;
    if (its > 0) budget = c == 0 ? its : std::min(budget, its);
  }
  return budget;
}

void NoteAllowed(int64_t rows, PartitionContext& context) {
  context.rows_allowed = std::max(context.rows_allowed, rows);
  if (rows != kAllRows) context.rows_sent = std::max(context.rows_sent, rows);
}

std::vector<int64_t> RowsWithinBudget(const IterationRecord& record,
                                      const IterationContext& context) {
  return RowAllowance(record, context).Rows();
}

}  // namespace penstock::protocol
