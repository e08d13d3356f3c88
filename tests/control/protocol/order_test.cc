// SPDX-License-Identifier: Apache-2.0
// Order kDeterministic with several consumers: which consumer an element belongs to, which one a
// consumer gets next, and the elements after a restore by another number of consumers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/protocol/partial_rows.h"
#include "control/protocol/queues/order_queue.h"
#include "control/protocol/restore.h"

namespace penstock::protocol {
namespace {

using Element = std::pair<uint64_t, Index>;  // partition, index

TEST(PositionsTest, GiveElementsInRotationFromTheFirst) {
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

TEST(RowUnionTest, IsTheIndicesOfAllConsumersRows) {
  const Positions positions{.partitions = 2, .consumers = 6, .first = 3};
  ASSERT_EQ(positions.stride(), 3);
  RowUnion row_union(positions, PartitionId(1));
  IndexSet expected;
  for (int64_t c = 0; c < 6; ++c) {
    const IndexSet rows = IndexSet::Of(c % 2, 40 + c);
    row_union.Add(c, rows);
    const auto offset = positions.OffsetOf(PartitionId(1), c);
    for (int64_t row = c % 2; offset && row < 40 + c; ++row) expected.Add(row * 3 + *offset);
  }
  const IndexSet indices = std::move(row_union).Indices();
  EXPECT_EQ(indices, expected);
  EXPECT_EQ(positions.RowsIn(indices, PartitionId(1), 1).size() +
                positions.RowsIn(indices, PartitionId(1), 3).size() +
                positions.RowsIn(indices, PartitionId(1), 5).size() +
                positions.RowsIn(indices, PartitionId(1), 0).size() +
                positions.RowsIn(indices, PartitionId(1), 2).size() +
                positions.RowsIn(indices, PartitionId(1), 4).size(),
            indices.size());
}

// A wrong report must not cost unbounded time or memory.
TEST(RowUnionTest, CountsTheLowestRowsOfAFarAheadReport) {
  RowUnion row_union({.partitions = 1, .consumers = 2}, PartitionId(1));
  row_union.Add(0, IndexSet::Of(0, int64_t{1} << 45));
  row_union.Add(1, IndexSet::Of(0, 3));
  const IndexSet indices = std::move(row_union).Indices();
  EXPECT_EQ(indices.FirstMissing(), 7);
  EXPECT_EQ(indices.size(), 6 + kMaxPartialRows);
}

TEST(OrderQueueTest, WaitsForTheEndOfThePartitionThatIsNext) {
  OrderQueue queue({.partitions = 3, .consumers = 2}, /*consumer=*/1, {{}, {}, {}});
  EXPECT_EQ(*queue.Next(), (PartitionRow{PartitionId(2), 0}));
  queue.Pop();
  EXPECT_EQ(*queue.Next(), (PartitionRow{PartitionId(1), 0}));  // index 1
  EXPECT_FALSE(queue.Expects(PartitionId(1), 0));               // it is the other consumer's
  EXPECT_TRUE(queue.Expects(PartitionId(1), 1));
  queue.SetEnd(PartitionId(1), 1);
  EXPECT_EQ(*queue.Next(), (PartitionRow{PartitionId(3), 0}));
  queue.SetEnd(PartitionId(2), 1);
  queue.SetEnd(PartitionId(3), 1);
  EXPECT_FALSE(queue.Next().has_value());
}

// --- Restores ------------------------------------------------------------------------

// The reads of several consumers, one launch after the other, without failures.
class Launches {
 public:
  Launches(std::vector<Index> lengths) : lengths_(std::move(lengths)) {
    committed_.resize(lengths_.size());
  }

  // Each consumer takes its elements of the steps below `steps`, and all save there.
  void Run(int64_t consumers, int64_t steps) {
    Run(std::vector<int64_t>(static_cast<size_t>(consumers), steps));
  }
  // Each consumer has its own number of steps.
  void Run(const std::vector<int64_t>& steps) {
    const auto consumers = static_cast<int64_t>(steps.size());
    const IterationRecord record = Begun(consumers);
    const Positions positions = PositionsOf(record);
    std::vector<std::tuple<int64_t, int64_t, Element>> delivered;  // by step and consumer
    std::vector<control::RankState> states;
    for (int64_t c = 0; c < consumers; ++c) {
      std::vector<IndexSet> passed;
      for (size_t p = 0; p < lengths_.size(); ++p) {
        passed.push_back(
            positions.RowsIn(CommittedIndices(record, PartitionId(p + 1)), PartitionId(p + 1), c));
      }
      OrderQueue queue(positions, c, std::move(passed));
      for (size_t p = 0; p < lengths_.size(); ++p) queue.SetEnd(PartitionId(p + 1), lengths_[p]);
      std::vector<IndexSet> rows(lengths_.size());
      while (const auto next = queue.Next()) {
        const Index index = *queue.NextOf(next->partition);
        const int64_t step = positions.StepOf(next->partition, index);
        if (step >= steps[static_cast<size_t>(c)]) break;
        delivered.emplace_back(step, c, Element(next->partition.value(), index));
        rows[next->partition.value() - 1].Add(next->row);
        queue.Pop();
      }
      states.push_back(StateOf(c, rows));
    }
    std::sort(delivered.begin(), delivered.end());
    for (const auto& [step, consumer, element] : delivered) order_.push_back(element);
    for (control::RankState& state : states) {
      control::SavedRepetition& saved = state.repetitions[0].saved;
      saved.positions = positions;
      saved.partitions.resize(lengths_.size());
      for (int64_t c = 0; c < consumers; ++c) {
        saved.readers.push_back({.client = ClientId(static_cast<uint64_t>(c) + 1), .consumer = c});
      }
      for (size_t p = 0; p < lengths_.size(); ++p) {
        saved.partitions[p].committed_below = committed_[p].FirstMissing();
        if (committed_[p].empty()) continue;
        if (saved.readers.size() == static_cast<size_t>(consumers)) {
          saved.readers.push_back({.client = ClientId(1000), .gone = true});
        }
        saved.readers.back().committed.push_back({PartitionId(p + 1), committed_[p]});
      }
    }
    const auto merged = control::MergeRankStates(states, 7);
    ASSERT_TRUE(merged.ok()) << merged.status();
    committed_.clear();
    for (const auto& partition : merged->repetitions.at(0).partitions) {
      committed_.push_back(partition.committed);
    }
  }

  const std::vector<Element>& order() const { return order_; }
  // Returns the order of a single reader.
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
  // Returns the record of a job that begins from states.
  IterationRecord Begun(int64_t consumers) const {
    IterationRecord record;
    record.order_consumers = consumers;
    ReceivedSets committed;
    for (size_t p = 0; p < lengths_.size(); ++p) {
      Apply(record, PartitionOpened{PartitionId(p + 1)});
      committed.Add(PartitionId(p + 1), committed_[p]);
    }
    Apply(record, ReaderJoined{ClientId(1000), Incarnation(1)});
    Apply(record, ReaderReplaced{ClientId(1000), Incarnation(1), std::move(committed)});
    Apply(record, ReaderGone{ClientId(1000), ReaderStatus::kLeft});
    return record;
  }
  static control::RankState StateOf(int64_t consumer, const std::vector<IndexSet>& rows) {
    control::RankState state{.client = ClientId(static_cast<uint64_t>(consumer) + 1),
                             .job = JobId(1),
                             .job_name = "job"};
    control::RankState::Repetition& repetition = state.repetitions.emplace_back();
    for (size_t p = 0; p < rows.size(); ++p) {
      if (!rows[p].empty()) repetition.delivered.push_back({PartitionId(p + 1), rows[p]});
    }
    return state;
  }

  const std::vector<Index> lengths_;
  std::vector<IndexSet> committed_;
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

TEST(OrderOfLaunches, AfterUnequalStatesContinuesWithMissingElements) {
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
    record_.order_consumers = 2;
    context_ = MakeIterationContext(record_);
    for (int p = 0; p < 2; ++p) Settle(OpenPartition(record_, context_));
  }
  void Settle(Decision decision) {
    do {
      for (const IterationChange& change : decision.changes) Apply(record_, change);
      sent_.insert(sent_.end(), decision.messages.begin(), decision.messages.end());
      decision = Consequences(record_, context_);
    } while (!decision.empty());
  }
  void Join(uint64_t client, int64_t consumer, std::optional<ReceivedSets> state = std::nullopt) {
    Settle(OnConnect(record_, context_,
                     {ClientId(client), Incarnation(++incarnation_), std::move(state), consumer}));
  }
  void Place() {
    for (PartitionId partition : Assignable(record_, context_)) {
      Settle(AssignTo(record_, context_, partition, WorkerId(1)));
    }
  }
  // Each of two consumers receives the two elements of its partition and reports both, and is told
  // the end. The first one delivers both, the second one as many as `delivered`.
  void ReadAll(Index delivered) {
    Join(1, 0);
    Join(2, 1);
    Place();
    for (const uint64_t p : {1, 2}) {
      const Index its = p == 1 ? 2 : delivered;
      Settle(OnReport(record_, context_, ClientId(p), Incarnation(p),
                      {.partition = PartitionId(p),
                       .placement = Placement(1),
                       .delivered = IndexSet::Of(0, its),
                       .received = its < 2 ? IndexSet::Of(its, 2) : IndexSet()}));
      Settle(OnReport(record_, context_, ClientId(p), Incarnation(p),
                      {.partition = PartitionId(3 - p), .placement = Placement(1)}));
      Settle(OnEnded(record_, context_, WorkerId(1), PartitionId(p), Placement(1), 2));
    }
    ASSERT_TRUE(record_.closed);
  }
  template <class What>
  std::vector<What> Sent() const {
    std::vector<What> sent;
    for (const Message& message : sent_)
      if (const auto* what = std::get_if<What>(&message)) sent.push_back(*what);
    return sent;
  }

  IterationRecord record_;
  IterationContext context_;
  std::vector<Message> sent_;
  uint64_t incarnation_ = 0;
};

TEST_F(OrderOfConsumers, NamesMissingConsumersUntilAllAreThere) {
  Join(1, 1);
  ASSERT_EQ(Sent<ToClient<Agreed>>().size(), 1u);
  EXPECT_EQ(Sent<ToClient<Agreed>>().back().waits_for, "consumer 0 has not joined");
  Join(2, 0);
  EXPECT_EQ(Sent<ToClient<Agreed>>().back().waits_for, "");
  EXPECT_EQ(Sent<ToClient<Agreed>>().size(), 3u);  // one to each
  Settle(OnReaderExpired(record_, context_, ClientId(2)));
  EXPECT_EQ(Sent<ToClient<Agreed>>().back().waits_for, "consumer 0 is gone and has not come back");
  EXPECT_EQ(Sent<ToClient<Agreed>>().back().client, ClientId(1));
  OnDisconnect(record_, context_, ClientId(1));
  Settle(OnConnect(record_, context_, {ClientId(1), Incarnation(1), std::nullopt, 1}));
  EXPECT_EQ(Sent<ToClient<Agreed>>().size(), 5u);  // again, on its new stream
}

TEST_F(OrderOfConsumers, ANumberIsOneProcesss) {
  Join(1, 1);
  Join(2, 1);
  ASSERT_EQ(Sent<Refused>().size(), 1u);
  EXPECT_EQ(Sent<Refused>()[0].why, Refusal::kConsumerTaken);
  Settle(OnReaderExpired(record_, context_, ClientId(1)));
  Join(2, 1);  // follows the expired client
  EXPECT_EQ(record_.readers.size(), 2u);
  Join(1, 1, ReceivedSets());  // and the earlier client comes too late
  ASSERT_EQ(Sent<Refused>().size(), 3u);
  EXPECT_EQ(Sent<Refused>()[2].why, Refusal::kConsumerTaken);
}

TEST_F(OrderOfConsumers, APartitionGoesAsFarAsAllItsConsumersHaveRoom) {
  Join(1, 0);
  Join(2, 1);
  Place();
  ASSERT_EQ(Sent<Assign>().size(), 2u);
  EXPECT_EQ(Sent<Assign>()[0].positions, (Positions{2, 2, 0}));
  EXPECT_EQ(Sent<Assign>()[0].rows, 0);
  // With two partitions and two consumers, each partition belongs to one consumer.
  OnReceiveLimit(record_, context_, ClientId(2), Incarnation(2), PartitionId(2), 6);
  Settle({});
  ASSERT_EQ(Sent<AllowRows>().size(), 1u);
  EXPECT_EQ(Sent<AllowRows>()[0].partition, PartitionId(2));
  EXPECT_EQ(Sent<AllowRows>()[0].rows, 6);
}

// The first consumer has delivered its elements and left. The second one dies with an element that
// it received and did not deliver.
TEST_F(OrderOfConsumers, AFollowerGetsWhatAConsumerDidNotDeliverBeforeItDied) {
  ReadAll(/*delivered=*/1);
  Settle(OnLeave(record_, context_, ClientId(1), Incarnation(1), {}));
  Settle(OnReaderExpired(record_, context_, ClientId(2)));
  EXPECT_FALSE(record_.finished);

  sent_.clear();
  Join(3, 0);  // its number has got everything
  EXPECT_TRUE(record_.closed);
  EXPECT_EQ(Sent<ToClient<End>>().size(), 1u);

  sent_.clear();
  Join(4, 1);
  EXPECT_FALSE(record_.closed);
  EXPECT_TRUE(Sent<ToClient<End>>().empty());
  Place();
  const std::vector<Assign> assigned = Sent<Assign>();
  ASSERT_EQ(assigned.size(), 2u);
  EXPECT_EQ(assigned[0].skip, IndexSet::Of(0, 2));
  EXPECT_EQ(assigned[1].skip, IndexSet::Of(0, 1));
}

// Both consumers have delivered everything, and the second one dies before it has left. No lease is
// needed for a finished iteration, so it is never declared dead.
TEST_F(OrderOfConsumers, AFollowerInAFinishedIterationGetsTheEnd) {
  ReadAll(/*delivered=*/2);
  EXPECT_TRUE(record_.finished);
  sent_.clear();
  Join(3, 1);
  EXPECT_TRUE(Sent<Refused>().empty());
  EXPECT_EQ(Sent<ToClient<End>>().size(), 1u);
}

// Such a process costs what the readers have. A search through all partitions for each partition
// would take minutes.
TEST(OrderOfManyPartitions, AnyNumberOfLateProcessesGetsTheEnd) {
  constexpr uint64_t kPartitions = 10'000;
  constexpr uint64_t kLate = 150;
  constexpr ClientId kRestored(1), kGone(2), kReads(3);
  IterationRecord record;
  record.order_consumers = 2;
  for (uint64_t p = 1; p <= kPartitions; ++p) Apply(record, PartitionOpened{PartitionId(p)});
  Apply(record, ReaderJoined{kRestored, Incarnation(1)});
  Apply(record, ReaderJoined{kGone, Incarnation(1), 0});
  Apply(record, ReaderJoined{kReads, Incarnation(1), 1});
  Apply(record, IterationClosed{absl::InlinedVector<Index, 1>(kPartitions, 1)});
  ReceivedSets final;
  for (uint64_t p = 1; p < kPartitions; p += 2) {
    Apply(record, ReaderCommitted{kGone, PartitionId(p), IndexSet::Of(0, 1)});
    final.Add(PartitionId(p + 1), IndexSet::Of(0, 1));
  }
  Apply(record, ReaderEnded{kReads, std::move(final)});
  for (const ClientId client : {kRestored, kGone})
    Apply(record, ReaderGone{client, ReaderStatus::kExpired});
  IterationContext context = MakeIterationContext(record);
  for (uint64_t n = 1; n <= kLate; ++n) {
    const Decision late =
        OnConnect(record, context, {ClientId(kReads.value() + n), Incarnation(1), std::nullopt, 0});
    ASSERT_TRUE(late.changes.empty());
    ASSERT_TRUE(std::holds_alternative<ToClient<End>>(late.messages.at(1)));
  }
}

TEST(OrderOfThree, APartitionGoesAsFarAsTheOneWithTheLeastRoom) {
  IterationRecord record;
  record.order_consumers = 3;
  IterationContext context = MakeIterationContext(record);
  const auto settle = [&](Decision decision) {
    std::vector<AllowRows> allowed;
    do {
      for (const IterationChange& change : decision.changes) Apply(record, change);
      for (const Message& message : decision.messages)
        if (const auto* allow = std::get_if<AllowRows>(&message)) allowed.push_back(*allow);
      decision = Consequences(record, context);
    } while (!decision.empty());
    return allowed;
  };
  settle(OpenPartition(record, context));
  for (uint64_t c = 0; c < 3; ++c) {
    settle(OnConnect(record, context,
                     {ClientId(c + 1), Incarnation(1), std::nullopt, static_cast<int64_t>(c)}));
  }
  settle(AssignTo(record, context, PartitionId(1), WorkerId(1)));
  OnReceiveLimit(record, context, ClientId(1), Incarnation(1), PartitionId(1), 30);
  OnReceiveLimit(record, context, ClientId(2), Incarnation(1), PartitionId(1), 31);
  EXPECT_TRUE(settle({}).empty());  // the third's room is not known yet
  OnReceiveLimit(record, context, ClientId(3), Incarnation(1), PartitionId(1), 5);
  EXPECT_EQ(settle({}).at(0).rows, 5);
  OnReceiveLimit(record, context, ClientId(3), Incarnation(1), PartitionId(1), 50);
  EXPECT_EQ(settle({}).at(0).rows, 30);
}

}  // namespace
}  // namespace penstock::protocol
