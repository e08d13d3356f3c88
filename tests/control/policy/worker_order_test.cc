// SPDX-License-Identifier: Apache-2.0
// The functions of control/policy/placing.h with an order decide as those that look at all workers.
#include "control/policy/worker_order.h"

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "control/policy/placing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

namespace p = ::penstock::protocol;
using ::testing::ElementsAre;

TEST(WorkerOrder, TheLeastLoadedComesFirst) {
  WorkerOrder order;
  order.Put(WorkerId(1), {.partitions = 1, .of_all = 1, .permits = 1});
  order.Put(WorkerId(2), {.partitions = 1, .of_all = 9, .permits = 4});
  order.Put(WorkerId(3), {.partitions = 1, .of_all = 2, .permits = 4});
  order.Put(WorkerId(4), {.partitions = 1, .of_all = 2, .permits = 4});
  const auto workers = [&] {
    std::vector<WorkerId> found;
    for (const auto& place : order.places()) found.push_back(std::get<WorkerId>(place));
    return found;
  };
  EXPECT_THAT(workers(), ElementsAre(WorkerId(3), WorkerId(4), WorkerId(2), WorkerId(1)));
  order.Put(WorkerId(3), {.partitions = 5, .of_all = 6, .permits = 4});
  EXPECT_THAT(workers(), ElementsAre(WorkerId(4), WorkerId(2), WorkerId(3), WorkerId(1)));
  EXPECT_THAT(order.overloaded(), ElementsAre(std::pair(-1.25, WorkerId(3))));
  order.Remove(WorkerId(3));
  order.Remove(WorkerId(7));
  EXPECT_THAT(workers(), ElementsAre(WorkerId(4), WorkerId(2), WorkerId(1)));
  EXPECT_TRUE(order.overloaded().empty());
}

// --- Random states -------------------------------------------------------------------

class RandomPlacing : public ::testing::Test {
 protected:
  // Two iterations of one job, whose partitions have random workers. Some partitions have ended.
  void Make(bool ends, bool all_placed) {
    state_ = State();
    usable_.clear();
    auto dataset = std::make_shared<const DatasetRecord>(
        DatasetRecord{"1000", "", {.ends = ends, .plan = {{.count = 100}}}});
    state_.Apply(DatasetRegistered{dataset});
    state_.Apply(JobCreated{{.id = JobId(1), .name = "job", .dataset = dataset}});
    const uint64_t workers = 1 + random_() % 6;
    for (uint64_t id = 1; id <= workers; ++id) {
      state_.Apply(WorkerRegistered{
          {.id = WorkerId(id), .permits = 1 + static_cast<int32_t>(random_() % 4)}});
      if (random_() % 5 > 0) usable_.push_back(UsableOf(state_.workers.at(WorkerId(id))));
    }
    for (const IterationId id : {IterationId(1), IterationId(2)}) {
      state_.Apply(IterationCreated{id, JobId(1), static_cast<int64_t>(id.value())});
      for (uint64_t n = random_() % 24; n > 0; --n) {
        const PartitionId partition(state_.iterations.at(id).record.partitions.size() + 1);
        state_.Apply(IterationAltered{id, p::PartitionOpened{partition}});
        if (!all_placed && random_() % 9 == 0) continue;
        const WorkerId worker(1 + random_() % workers);
        state_.Apply(IterationAltered{id, p::PartitionAssigned{partition, Placement(1), worker}});
      }
    }
    context_ = p::MakeIterationContext(iteration().record);
    for (auto& partition : context_.partitions)
      if (random_() % 4 == 0) partition.ended = 1;
  }
  const IterationState& iteration() const { return state_.iterations.at(IterationId(1)); }
  WorkerOrder Order() const {
    const PartitionCounts counts(state_, iteration(), context_);
    WorkerOrder order;
    for (const UsableWorker& worker : usable_) order.Put(worker.id, LoadOf(counts, worker));
    return order;
  }

  // Moves one partition after another, and looks at all workers for each.
  std::vector<PartitionId> RelievedOneByOne() const {
    const auto& partitions = iteration().record.partitions;
    if (std::ranges::any_of(partitions, [](const auto& its) { return its.collecting(); }))
      return {};
    const PartitionCounts counts(state_, iteration(), context_);
    std::vector<WorkerLoad> loads;
    for (const UsableWorker& worker : usable_) loads.push_back(LoadOf(counts, worker));
    std::vector<PartitionId> relieved;
    for (size_t i = 0; i < partitions.size(); ++i) {
      const auto its = std::ranges::find(usable_, partitions[i].worker, &UsableWorker::id);
      if (context_.partitions[i].ended || its == usable_.end()) continue;
      WorkerLoad& from = loads[static_cast<size_t>(its - usable_.begin())];
      if (from.partitions <= from.permits) continue;
      WorkerLoad& to = *std::ranges::min_element(loads, {}, &WorkerLoad::WithOneMore);
      if (to.WithOneMore() >= from.PerPermit()) continue;
      --from.partitions;
      ++to.partitions;
      relieved.push_back(PartitionId(i + 1));
    }
    return relieved;
  }

  std::mt19937_64 random_{1};
  State state_;
  p::IterationContext context_;
  std::vector<UsableWorker> usable_;
};

TEST_F(RandomPlacing, AnOrderChoosesTheSameWorker) {
  int chosen = 0;
  for (int round = 0; round < 2000; ++round) {
    Make(/*ends=*/round % 2 == 0, /*all_placed=*/false);
    const PartitionCounts counts(state_, iteration(), context_);
    const WorkerOrder order = Order();
    const WorkerId worker = ChooseWorker(state_, iteration(), order);
    ASSERT_EQ(worker, ChooseWorker(state_, iteration(), counts, PartitionId(1), usable_))
        << "round " << round;
    ASSERT_EQ(SomebodyHasRoom(state_, iteration(), order),
              SomebodyHasRoom(state_, iteration(), counts, usable_))
        << "round " << round;
    chosen += worker ? 1 : 0;
    std::vector<WorkerId> avoid;
    for (uint64_t id = 1; id <= 6; ++id)
      if (random_() % 2 == 0) avoid.push_back(WorkerId(id));
    ASSERT_EQ(ChooseWorker(state_, iteration(), order, avoid),
              ChooseWorker(state_, iteration(), counts, PartitionId(1), usable_, avoid))
        << "round " << round;
  }
  EXPECT_GT(chosen, 1000);
  EXPECT_LT(chosen, 2000);
}

TEST_F(RandomPlacing, AnOrderRelievesTheSamePartitions) {
  int relieved = 0;
  for (int round = 0; round < 2000; ++round) {
    Make(/*ends=*/true, /*all_placed=*/round % 8 > 0);
    const std::vector<PartitionId> partitions =
        PartitionsToRelieve(state_, iteration(), context_, Order());
    ASSERT_EQ(partitions, RelievedOneByOne()) << "round " << round;
    ASSERT_EQ(partitions, PartitionsToRelieve(state_, iteration(), context_, usable_));
    relieved += partitions.empty() ? 0 : 1;
  }
  EXPECT_GT(relieved, 200);
  EXPECT_LT(relieved, 1900);
}

}  // namespace
}  // namespace penstock::control
