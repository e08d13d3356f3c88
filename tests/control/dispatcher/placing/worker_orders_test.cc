// SPDX-License-Identifier: Apache-2.0
// WorkerOrders compares each order with a computed one, because check_kept is set.
#include "control/dispatcher/placing/worker_orders.h"

#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace penstock::control {
namespace {

namespace p = ::penstock::protocol;

class WorkerOrdersTest : public ::testing::Test {
 protected:
  static constexpr IterationId kIteration{1};

  void SetUp() override {
    auto dataset = std::make_shared<const DatasetRecord>(DatasetRecord{"1000", "", {}});
    state_.Apply(DatasetRegistered{dataset});
    state_.Apply(JobCreated{{.id = JobId(1), .name = "job", .dataset = dataset}});
    for (const IterationId id : {kIteration, IterationId(2)})
      state_.Apply(IterationCreated{id, JobId(1), static_cast<int64_t>(id.value())});
  }
  void AddWorker(uint64_t id) {
    state_.Apply(WorkerRegistered{{.id = WorkerId(id)}});
    records_.Add(WorkerId(id));
    usable_.Update({});
  }
  void Lose(uint64_t id) {
    if (state_.FindWorker(WorkerId(id)) == nullptr) return;
    state_.Apply(WorkerGone{WorkerId(id)});
    records_.Add(WorkerId(id));
    usable_.Update({});
  }
  PartitionId Open(IterationId id) {
    const PartitionId partition(state_.iterations.at(id).record.partitions.size() + 1);
    state_.Apply(IterationAltered{id, p::PartitionOpened{partition}});
    if (id == kIteration) context_.partitions.emplace_back();
    return partition;
  }
  void Assign(IterationId id, PartitionId partition, WorkerId worker) {
    const Placement placement = state_.iterations.at(id).record.partition(partition).placement;
    state_.Apply(IterationAltered{id, p::PartitionAssigned{partition, placement, worker}});
  }
  void Raise(IterationId id, PartitionId partition) {
    const Placement placement = state_.iterations.at(id).record.partition(partition).placement;
    if (id == kIteration) context_.partitions[partition.value() - 1].ended.reset();
    state_.Apply(
        IterationAltered{id, p::PlacementRaised{partition, Placement(placement.value() + 1)}});
  }
  void End(PartitionId partition) {
    context_.partitions[partition.value() - 1].ended = 10;
    orders_.NoteEnded(kIteration, iteration().record.partition(partition).worker);
  }
  const IterationState& iteration() const { return state_.iterations.at(kIteration); }
  const WorkerOrder& Order(size_t avoided = 0) {
    return orders_.Of(iteration(), context_, avoided);
  }
  // Opens, places, moves and ends partitions of two iterations, while workers come and go.
  void ChangeAtRandom(uint64_t workers) {
    std::mt19937_64 random(1);
    for (uint64_t id = 1; id <= workers; ++id) AddWorker(id);
    for (int step = 0; step < 4000; ++step) {
      const IterationId id(1 + random() % 2);
      const auto& partitions = state_.iterations.at(id).record.partitions;
      const PartitionId partition(1 + random() % 12);
      if (partition.value() > partitions.size()) {
        Open(id);
      } else if (const auto& its = partitions[partition.value() - 1]; its.collecting()) {
        Assign(id, partition, WorkerId(1 + random() % workers));
      } else if (id == kIteration && random() % 3 == 0) {
        End(partition);
      } else {
        Raise(id, partition);
      }
      if (random() % 9 == 0) Lose(1 + random() % workers);
      if (random() % 5 == 0) AddWorker(1 + random() % workers);
      if (random() % 3 == 0) CompareWithList(random() % 4);
    }
    CompareWithList(0);
  }
  // The functions with an order and those with a list must return the same.
  void CompareWithList(size_t avoided) {
    const PartitionCounts counts(state_, iteration(), context_);
    std::vector<WorkerId> avoid;
    for (const UsableWorker& worker : usable_.all().subspan(0, avoided)) avoid.push_back(worker.id);
    EXPECT_EQ(ChooseWorker(state_, iteration(), Order(avoid.size()), avoid),
              ChooseWorker(state_, iteration(), counts, PartitionId(1), usable_.all(), avoid));
    EXPECT_EQ(PartitionsToRelieve(state_, iteration(), context_,
                                  Order(iteration().record.partitions.size())),
              PartitionsToRelieve(state_, iteration(), context_, usable_.all()));
  }

  State state_;
  ChangeLog<WorkerId> records_, connections_;
  UsableWorkers usable_{{state_, records_, connections_, [](WorkerId) { return true; }}};
  p::IterationContext context_;
  WorkerOrders orders_{state_, usable_, /*check_kept=*/[] { return true; }};
};

TEST_F(WorkerOrdersTest, FollowPartitionsAndWorkers) {
  ChangeAtRandom(8);
}

TEST_F(WorkerOrdersTest, OfFewPartitionsFollowThemToo) {
  ChangeAtRandom(200);
}

TEST_F(WorkerOrdersTest, AnOrderThatWasNotAskedForInLongIsMadeAgain) {
  AddWorker(1);
  AddWorker(2);
  const PartitionId partition = Open(kIteration);
  Assign(kIteration, partition, WorkerId(1));
  Order();
  for (int i = 0; i < 100'000; ++i) {
    Raise(kIteration, partition);
    Assign(kIteration, partition, WorkerId(2));
  }
  EXPECT_EQ(Order().LoadOf(WorkerId(2)).partitions, 1);
}

TEST_F(WorkerOrdersTest, OfFewPartitionsHaveTheWorkersThatMayBeChosen) {
  for (uint64_t id = 1; id <= 100; ++id) AddWorker(id);
  Assign(kIteration, Open(kIteration), WorkerId(1));
  const PartitionId other = Open(IterationId(2));
  Assign(IterationId(2), other, WorkerId(3));
  const auto workers = [&](size_t avoided) {
    std::vector<uint64_t> in_order;
    for (const auto& place : Order(avoided).places())
      in_order.push_back(std::get<WorkerId>(place).value());
    return in_order;
  };
  EXPECT_EQ(workers(0), (std::vector<uint64_t>{2, 1}));
  EXPECT_EQ(workers(2), (std::vector<uint64_t>{2, 4, 5, 1}));
  Raise(IterationId(2), other);
  EXPECT_EQ(workers(2), (std::vector<uint64_t>{2, 3, 4, 1}));
}

}  // namespace
}  // namespace penstock::control
