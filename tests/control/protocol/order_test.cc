// SPDX-License-Identifier: Apache-2.0
// Order kDeterministic with several consumers: whose an element is, who gets which next, and what
// comes behind states that other numbers of consumers go on from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "control/protocol/iteration_desk.h"
#include "control/protocol/loose_turns.h"
#include "control/protocol/order_queue.h"
#include "control/protocol/restore.h"

namespace penstock::protocol {
namespace {

using Element = std::pair<uint64_t, Index>;  // partition, index

TEST(PositionsTest, DealElementsInTurnFromTheFirst) {
  const Positions positions{.partitions = 2, .consumers = 3, .first = 5};
  EXPECT_EQ(positions.At(PartitionId(2), 2), 5);
  EXPECT_EQ(positions.ConsumerOf(PartitionId(2), 2), 0);
  EXPECT_EQ(positions.ConsumerOf(PartitionId(1), 3), 1);
  EXPECT_EQ(positions.ConsumerOf(PartitionId(2), 3), 2);
  EXPECT_EQ(positions.ConsumerOf(PartitionId(1), 4), 0);
  EXPECT_EQ(positions.StepOf(PartitionId(2), 3), 0);
  EXPECT_EQ(positions.StepOf(PartitionId(1), 4), 1);
}

TEST(PositionsTest, AConsumerHasOneOfEachStrideOrNone) {
  for (int64_t partitions = 1; partitions <= 8; ++partitions) {
    for (int64_t consumers = 1; consumers <= 7; ++consumers) {
      for (Index first : {0, 1, 11}) {
        const Positions positions{partitions, consumers, first};
        for (int64_t c = 0; c < consumers; ++c) {
          int64_t shares = 0;
          for (uint64_t p = 1; p <= static_cast<uint64_t>(partitions); ++p) {
            const auto offset = positions.OffsetOf(PartitionId(p), c);
            shares += offset.has_value();
            for (Index index = 0; index < 60; ++index) {
              const bool its = offset && index % positions.stride() == *offset;
              ASSERT_EQ(positions.ConsumerOf(PartitionId(p), index) == c, its)
                  << partitions << " partitions, " << consumers << " consumers, first " << first;
            }
          }
          EXPECT_EQ(shares, positions.shares());
        }
      }
    }
  }
}

TEST(DealtTest, IsTheIndicesOfAllConsumersTurns) {
  const Positions positions{.partitions = 2, .consumers = 6, .first = 3};
  ASSERT_EQ(positions.stride(), 3);
  Dealt dealt(positions, PartitionId(1));
  IndexSet expected;
  for (int64_t c = 0; c < 6; ++c) {
    const IndexSet turns = IndexSet::Of(c % 2, 40 + c);
    dealt.Add(c, turns);
    const auto offset = positions.OffsetOf(PartitionId(1), c);
    for (int64_t turn = c % 2; offset && turn < 40 + c; ++turn) expected.Add(turn * 3 + *offset);
  }
  const IndexSet indices = std::move(dealt).Indices();
  EXPECT_EQ(indices, expected);
  EXPECT_EQ(positions.TurnsIn(indices, PartitionId(1), 1).size() +
                positions.TurnsIn(indices, PartitionId(1), 3).size() +
                positions.TurnsIn(indices, PartitionId(1), 5).size() +
                positions.TurnsIn(indices, PartitionId(1), 0).size() +
                positions.TurnsIn(indices, PartitionId(1), 2).size() +
                positions.TurnsIn(indices, PartitionId(1), 4).size(),
            indices.size());
}

// What is said may be wrong: it costs neither time nor memory without bounds.
TEST(DealtTest, OfOneThatSaysItIsFarAheadTheLowestCount) {
  Dealt dealt({.partitions = 1, .consumers = 2}, PartitionId(1));
  dealt.Add(0, IndexSet::Of(0, int64_t{1} << 45));
  dealt.Add(1, IndexSet::Of(0, 3));
  const IndexSet indices = std::move(dealt).Indices();
  EXPECT_EQ(indices.FirstMissing(), 7);
  EXPECT_EQ(indices.size(), 6 + kMostLooseTurns);
}

TEST(OrderQueueTest, WaitsForTheEndOfAPartitionWhoseTurnItIs) {
  OrderQueue queue({.partitions = 3, .consumers = 2}, /*consumer=*/1, {{}, {}, {}});
  EXPECT_EQ(*queue.Next(), (TurnOf{PartitionId(2), 0}));
  queue.Take();
  EXPECT_EQ(*queue.Next(), (TurnOf{PartitionId(1), 0}));  // index 1
  EXPECT_FALSE(queue.Expects(PartitionId(1), 0));         // the other's
  EXPECT_TRUE(queue.Expects(PartitionId(1), 1));
  queue.SetEnd(PartitionId(1), 1);
  EXPECT_EQ(*queue.Next(), (TurnOf{PartitionId(3), 0}));
  queue.SetEnd(PartitionId(2), 1);
  queue.SetEnd(PartitionId(3), 1);
  EXPECT_FALSE(queue.Next().has_value());
}

// --- Restores ------------------------------------------------------------------------

// What several consumers do, one launch behind the other, with nothing that fails.
class Launches {
 public:
  Launches(std::vector<Index> lengths) : lengths_(std::move(lengths)) {
    kept_.resize(lengths_.size());
  }

  // Each consumer takes its elements of steps below `steps`; all save there.
  void Run(int64_t consumers, int64_t steps) {
    Run(std::vector<int64_t>(static_cast<size_t>(consumers), steps));
  }
  // Below those of each consumer.
  void Run(const std::vector<int64_t>& steps) {
    const auto consumers = static_cast<int64_t>(steps.size());
    const IterationRecord record = Begun(consumers);
    const Positions positions = PositionsOf(record);
    std::vector<std::tuple<int64_t, int64_t, Element>> taken;  // by step and consumer
    std::vector<control::RankState> states;
    for (int64_t c = 0; c < consumers; ++c) {
      std::vector<IndexSet> passed;
      for (size_t p = 0; p < lengths_.size(); ++p) {
        passed.push_back(
            positions.TurnsIn(Kept(record, PartitionId(p + 1)), PartitionId(p + 1), c));
      }
      OrderQueue queue(positions, c, std::move(passed));
      for (size_t p = 0; p < lengths_.size(); ++p) queue.SetEnd(PartitionId(p + 1), lengths_[p]);
      std::vector<IndexSet> turns(lengths_.size());
      while (const auto next = queue.Next()) {
        const Index index = *queue.NextOf(next->partition);
        const int64_t step = positions.StepOf(next->partition, index);
        if (step >= steps[static_cast<size_t>(c)]) break;
        taken.emplace_back(step, c, Element(next->partition.value(), index));
        turns[next->partition.value() - 1].Add(next->turn);
        queue.Take();
      }
      states.push_back(StateOf(c, turns));
    }
    std::sort(taken.begin(), taken.end());
    for (const auto& [step, consumer, element] : taken) order_.push_back(element);
    for (control::RankState& state : states) {
      control::SavedRepetition& saved = state.repetitions[0].saved;
      saved.dealt = positions;
      saved.partitions.resize(lengths_.size());
      for (int64_t c = 0; c < consumers; ++c) {
        saved.readers.push_back({.client = ClientId(static_cast<uint64_t>(c) + 1), .consumer = c});
      }
      for (size_t p = 0; p < lengths_.size(); ++p) {
        saved.partitions[p].kept_below = kept_[p].FirstMissing();
        if (kept_[p].empty()) continue;
        if (saved.readers.size() == static_cast<size_t>(consumers)) {
          saved.readers.push_back({.client = ClientId(1000), .gone = true});
        }
        saved.readers.back().kept.push_back({PartitionId(p + 1), kept_[p]});
      }
    }
    const auto united = control::Union(states, 7);
    ASSERT_TRUE(united.ok()) << united.status();
    kept_.clear();
    for (const auto& partition : united->repetitions.at(0).partitions) {
      kept_.push_back(partition.kept);
    }
  }

  const std::vector<Element>& order() const { return order_; }
  // The order of one reader.
  std::vector<Element> OfOne() const {
    std::vector<Element> order;
    for (Index index = 0; index < *std::max_element(lengths_.begin(), lengths_.end()); ++index) {
      for (size_t p = 0; p < lengths_.size(); ++p) {
        if (index < lengths_[p]) order.emplace_back(p + 1, index);
      }
    }
    return order;
  }

 private:
  // As a job begins behind states.
  IterationRecord Begun(int64_t consumers) const {
    IterationRecord record;
    record.dealt_to = consumers;
    Holdings kept;
    for (size_t p = 0; p < lengths_.size(); ++p) {
      Apply(record, PartitionOpened{PartitionId(p + 1)});
      At(kept, PartitionId(p + 1)) = kept_[p];
    }
    Apply(record, ReaderJoined{ClientId(1000), Incarnation(1)});
    Apply(record, ReaderReplaced{ClientId(1000), Incarnation(1), std::move(kept)});
    Apply(record, ReaderGone{ClientId(1000), Standing::kLeft});
    return record;
  }
  static control::RankState StateOf(int64_t consumer, const std::vector<IndexSet>& turns) {
    control::RankState state{.client = ClientId(static_cast<uint64_t>(consumer) + 1),
                             .job = JobId(1),
                             .job_name = "job"};
    control::RankState::Repetition& repetition = state.repetitions.emplace_back();
    for (size_t p = 0; p < turns.size(); ++p) {
      if (!turns[p].empty()) repetition.taken.push_back({PartitionId(p + 1), turns[p]});
    }
    return state;
  }

  const std::vector<Index> lengths_;
  std::vector<IndexSet> kept_;
  std::vector<Element> order_;
};

TEST(OrderOfLaunches, IsThatOfOneReaderHoweverManyGoOn) {
  std::mt19937 random(11);
  const auto upto = [&](int64_t most) { return static_cast<int64_t>(random() % (most + 1)); };
  for (int i = 0; i < 500; ++i) {
    std::vector<Index> lengths(1 + upto(4));
    for (Index& length : lengths) length = upto(30);
    Launches launches(lengths);
    for (int launch = 0; launch < 3; ++launch) launches.Run(1 + upto(5), upto(12));
    launches.Run(1 + upto(5), 1000);
    ASSERT_EQ(launches.order(), launches.OfOne()) << "case " << i;
  }
}

TEST(OrderOfLaunches, BehindStatesOfUnequalStepsIsThatOfWhatNobodyHas) {
  std::mt19937 random(12);
  const auto upto = [&](int64_t most) { return static_cast<int64_t>(random() % (most + 1)); };
  for (int i = 0; i < 500; ++i) {
    std::vector<Index> lengths(1 + upto(4));
    for (Index& length : lengths) length = upto(30);
    Launches launches(lengths);
    for (int launch = 0; launch < 2; ++launch) {
      std::vector<int64_t> steps(1 + upto(5));
      for (int64_t& its : steps) its = upto(12);
      launches.Run(steps);
    }
    const std::vector<Element> before = launches.order();
    launches.Run(1 + upto(5), 1000);
    std::vector<Element> left = launches.OfOne();
    std::erase_if(left, [&](const Element& element) {
      return std::find(before.begin(), before.end(), element) != before.end();
    });
    std::vector<Element> expected = before;
    expected.insert(expected.end(), left.begin(), left.end());
    ASSERT_EQ(launches.order(), expected) << "case " << i;
  }
}

// --- The dispatcher's part -----------------------------------------------------------

class OrderOfConsumers : public testing::Test {
 protected:
  OrderOfConsumers() {
    record_.dealt_to = 2;
    desk_ = OpenDesk(record_);
    for (int p = 0; p < 2; ++p) Settle(OpenPartition(record_, desk_));
  }
  void Settle(Decision decision) {
    do {
      for (const IterationChange& change : decision.changes) Apply(record_, change);
      said_.insert(said_.end(), decision.messages.begin(), decision.messages.end());
      decision = Consequences(record_, desk_);
    } while (!decision.empty());
  }
  void Join(uint64_t client, int64_t consumer, std::optional<Holdings> state = std::nullopt) {
    Settle(OnPresents(record_, desk_,
                      {ClientId(client), Incarnation(++incarnation_), std::move(state), consumer}));
  }
  void Place() {
    for (PartitionId partition : Assignable(record_, desk_)) {
      Settle(AssignTo(record_, desk_, partition, WorkerId(1)));
    }
  }
  template <class What>
  std::vector<What> Said() const {
    std::vector<What> said;
    for (const Message& message : said_)
      if (const auto* what = std::get_if<What>(&message)) said.push_back(*what);
    return said;
  }

  IterationRecord record_;
  Desk desk_;
  std::vector<Message> said_;
  uint64_t incarnation_ = 0;
};

TEST_F(OrderOfConsumers, SaysWhoIsMissingUntilAllAreThere) {
  Join(1, 1);
  ASSERT_EQ(Said<Agreed>().size(), 1u);
  EXPECT_EQ(Said<Agreed>().back().waits_for, "consumer 0 has not joined");
  Join(2, 0);
  EXPECT_EQ(Said<Agreed>().back().waits_for, "");
  EXPECT_EQ(Said<Agreed>().size(), 3u);  // to both
  Settle(OnReaderDead(record_, desk_, ClientId(2)));
  EXPECT_EQ(Said<Agreed>().back().waits_for, "consumer 0 is gone and has not come back");
  EXPECT_EQ(Said<Agreed>().back().client, ClientId(1));
  OnDisconnects(record_, desk_, ClientId(1));
  Settle(OnPresents(record_, desk_, {ClientId(1), Incarnation(1), std::nullopt, 1}));
  EXPECT_EQ(Said<Agreed>().size(), 5u);  // again, on its new stream
}

TEST_F(OrderOfConsumers, ANumberIsOneProcesss) {
  Join(1, 1);
  Join(2, 1);
  ASSERT_EQ(Said<Refused>().size(), 1u);
  EXPECT_EQ(Said<Refused>()[0].why, Refusal::kConsumerTaken);
  Settle(OnReaderDead(record_, desk_, ClientId(1)));
  Join(2, 1);  // follows
  EXPECT_EQ(record_.readers.size(), 2u);
  Join(1, 1, Holdings());  // and the one before comes too late
  ASSERT_EQ(Said<Refused>().size(), 3u);
  EXPECT_EQ(Said<Refused>()[2].why, Refusal::kConsumerTaken);
}

TEST_F(OrderOfConsumers, APartitionGoesAsFarAsAllWhoShareItHaveRoom) {
  Join(1, 0);
  Join(2, 1);
  Place();
  ASSERT_EQ(Said<Assign>().size(), 2u);
  EXPECT_EQ(Said<Assign>()[0].dealt, (Positions{2, 2, 0}));
  EXPECT_EQ(Said<Assign>()[0].turns, 0);
  // Of two partitions and two consumers each partition is one consumer's.
  OnAhead(record_, desk_, ClientId(2), Incarnation(2), PartitionId(2), 6);
  Settle({});
  ASSERT_EQ(Said<AllowTurns>().size(), 1u);
  EXPECT_EQ(Said<AllowTurns>()[0].partition, PartitionId(2));
  EXPECT_EQ(Said<AllowTurns>()[0].turns, 6);
}

TEST(OrderOfThree, APartitionGoesAsFarAsTheOneWithTheLeastRoom) {
  IterationRecord record;
  record.dealt_to = 3;
  Desk desk = OpenDesk(record);
  const auto settle = [&](Decision decision) {
    std::vector<AllowTurns> allowed;
    do {
      for (const IterationChange& change : decision.changes) Apply(record, change);
      for (const Message& message : decision.messages)
        if (const auto* allow = std::get_if<AllowTurns>(&message)) allowed.push_back(*allow);
      decision = Consequences(record, desk);
    } while (!decision.empty());
    return allowed;
  };
  settle(OpenPartition(record, desk));
  for (uint64_t c = 0; c < 3; ++c) {
    settle(OnPresents(record, desk,
                      {ClientId(c + 1), Incarnation(1), std::nullopt, static_cast<int64_t>(c)}));
  }
  settle(AssignTo(record, desk, PartitionId(1), WorkerId(1)));
  OnAhead(record, desk, ClientId(1), Incarnation(1), PartitionId(1), 30);
  OnAhead(record, desk, ClientId(2), Incarnation(1), PartitionId(1), 31);
  EXPECT_TRUE(settle({}).empty());  // nobody knows of the third yet
  OnAhead(record, desk, ClientId(3), Incarnation(1), PartitionId(1), 5);
  EXPECT_EQ(settle({}).at(0).turns, 5);
  OnAhead(record, desk, ClientId(3), Incarnation(1), PartitionId(1), 50);
  EXPECT_EQ(settle({}).at(0).turns, 30);
}

}  // namespace
}  // namespace penstock::protocol
