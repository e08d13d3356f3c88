// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/rounds.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::protocol {
namespace {

using Kind = RoundEvent::Kind;

void Add(Schedule& schedule, int64_t round, Kind kind, uint64_t partition) {
  schedule.Add({round, kind, PartitionId(partition)});
}

std::vector<PartitionRow> Rounds(const Schedule& schedule, int64_t from, int64_t to) {
  RoundCursor cursor(schedule);
  cursor.MoveTo(schedule, from);
  std::vector<PartitionRow> rows;
  for (; cursor.round() < to; cursor.Advance(schedule)) {
    rows.push_back(cursor.Row(schedule).value_or(PartitionRow()));
  }
  return rows;
}

Schedule Eventful() {
  Schedule schedule;
  Add(schedule, 0, Kind::kJoins, 1);
  Add(schedule, 2, Kind::kJoins, 2);
  Add(schedule, 2, Kind::kJoins, 3);
  Add(schedule, 6, Kind::kSkips, 2);
  Add(schedule, 9, Kind::kLeaves, 3);
  return schedule;
}

TEST(Rounds, PartitionsTakeRoundsInRotation) {
  const PartitionId a(1), b(2), c(3);
  EXPECT_THAT(Rounds(Eventful(), 0, 12),
              ::testing::ElementsAre(PartitionRow{a, 0}, PartitionRow{a, 1}, PartitionRow{a, 2},
                                     PartitionRow{b, 0}, PartitionRow{c, 0}, PartitionRow{a, 3},
                                     PartitionRow{c, 1}, PartitionRow{a, 4}, PartitionRow{b, 1},
                                     PartitionRow{a, 5}, PartitionRow{b, 2}, PartitionRow{a, 6}));
}

TEST(Rounds, AreTheSameFromAnyPlaceAndAfterForgetting) {
  const std::vector<PartitionRow> all = Rounds(Eventful(), 0, 40);
  for (int64_t from = 0; from < 40; ++from) {
    const std::vector<PartitionRow> rest(all.begin() + from, all.end());
    EXPECT_EQ(Rounds(Eventful(), from, 40), rest);
    Schedule forgetful = Eventful();
    ForgetBefore(forgetful, from);
    EXPECT_EQ(Rounds(forgetful, from, 40), rest) << from;
  }
}

TEST(Rounds, ACursorMayBeOlderThanForgottenRounds) {
  Schedule schedule = Eventful();
  RoundCursor cursor(schedule);
  cursor.MoveTo(schedule, 8);
  const PartitionRow before = *cursor.Row(schedule);
  ForgetBefore(schedule, 7);
  EXPECT_EQ(*cursor.Row(schedule), before);
  cursor.MoveTo(schedule, 11);
  EXPECT_EQ(cursor.Row(schedule), Rounds(Eventful(), 11, 12)[0]);
}

TEST(Rounds, AScheduleThatCannotBeWalkedAlongIsNotSound) {
  EXPECT_TRUE(Eventful().IsSound());
  Schedule forgetful = Eventful();
  ForgetBefore(forgetful, 7);
  EXPECT_TRUE(forgetful.IsSound());
  const auto with = [](int64_t round, Kind kind, uint64_t partition) {
    Schedule schedule = Eventful();
    Add(schedule, round, kind, partition);
    return schedule.IsSound();
  };
  EXPECT_TRUE(with(9, Kind::kLeaves, 2));
  EXPECT_FALSE(with(9, Kind::kLeaves, 3)) << "it has left";
  EXPECT_FALSE(with(9, Kind::kSkips, 4)) << "it never joined";
  EXPECT_FALSE(with(8, Kind::kLeaves, 2)) << "events ascend";
  EXPECT_FALSE(with(9, Kind::kJoins, 1)) << "it is in rotation";
  Schedule skips_nobody;
  Add(skips_nobody, 0, Kind::kSkips, 1);
  EXPECT_FALSE(skips_nobody.IsSound());
  Schedule outside = forgetful;
  outside.next = static_cast<int64_t>(outside.rotation.size());
  EXPECT_FALSE(outside.IsSound());
}

TEST(Rounds, EachConsumerGetsOneOfEachRemainderRound) {
  for (int64_t consumers = 1; consumers <= 5; ++consumers) {
    for (const Ends& ends : {Ends{7, 3, 0, 9}, Ends{1, 1, 1}, Ends{5}, Ends{0, 10, 4}}) {
      for (const RemainderPolicy policy : {RemainderPolicy::kPad, RemainderPolicy::kDrop}) {
        int64_t lacking = 0;
        std::set<std::pair<PartitionId, Index>> indices;
        for (int64_t r = WholeRounds(ends, consumers); r < AllRounds(ends, consumers); ++r) {
          for (int64_t c = 0; c < consumers; ++c) {
            const auto row = RemainderRow(ends, consumers, policy, r, c);
            if (!row) {
              ++lacking;
              continue;
            }
            const Index end = ends[row->partition.value() - 1];
            const Remainder remainder = ComputeRemainder(ends, consumers, policy, row->partition);
            const Index index = IndexOf(row->row, c, consumers, end, remainder);
            EXPECT_LT(index, end + remainder.pads);
            EXPECT_GE(index, end / consumers * consumers);
            EXPECT_EQ(ConsumerOf(index, consumers, end, remainder), c);
            EXPECT_TRUE(indices.emplace(row->partition, index).second);
          }
        }
        EXPECT_EQ(lacking, policy == RemainderPolicy::kPad ? 0 : LacksInLast(ends, consumers));
      }
    }
  }
}

}  // namespace
}  // namespace penstock::protocol
