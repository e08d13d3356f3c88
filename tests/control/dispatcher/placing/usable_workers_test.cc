// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/placing/usable_workers.h"

#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::ElementsAre;

class UsableWorkersTest : public ::testing::Test {
 protected:
  void Register(uint64_t id, int32_t permits, std::vector<std::string> tags = {}) {
    WorkerRecord worker{.id = WorkerId(id), .tags = std::move(tags), .permits = permits};
    state_.Apply(WorkerRegistered{std::move(worker)});
    records_.Add(WorkerId(id));
  }
  void Connect(uint64_t id, bool is = true) {
    if (is) connected_.insert(WorkerId(id));
    if (!is) connected_.erase(WorkerId(id));
    connections_.Add(WorkerId(id));
  }
  void Drain(uint64_t id) {
    state_.Apply(WorkerDraining{WorkerId(id)});
    records_.Add(WorkerId(id));
  }
  void Lose(uint64_t id) {
    state_.Apply(WorkerGone{WorkerId(id)});
    records_.Add(WorkerId(id));
  }
  std::vector<uint64_t> Usable(std::vector<WorkerId> reserved = {}) {
    usable_.Update(std::move(reserved));
    std::vector<uint64_t> ids;
    for (const UsableWorker& worker : usable_.all()) ids.push_back(worker.id.value());
    return ids;
  }

  State state_;
  ChangeLog<WorkerId> records_;
  ChangeLog<WorkerId> connections_;
  std::set<WorkerId> connected_;
  UsableWorkers usable_{{state_, records_, connections_,
                         [this](WorkerId worker) { return connected_.contains(worker); }}};
};

TEST_F(UsableWorkersTest, AreConnectedAndNeitherDrainNorAreReserved) {
  for (uint64_t id : {1, 2, 3, 4}) Register(id, /*permits=*/2);
  for (uint64_t id : {4, 2, 1, 9}) Connect(id);
  EXPECT_THAT(Usable(), ElementsAre(1, 2, 4));
  EXPECT_THAT(Usable({WorkerId(2)}), ElementsAre(1, 4));
  EXPECT_THAT(Usable({WorkerId(1)}), ElementsAre(2, 4));
  Drain(2);
  EXPECT_THAT(Usable(), ElementsAre(1, 4));
  Connect(4, false);
  EXPECT_THAT(Usable(), ElementsAre(1));
  Register(1, /*permits=*/7);
  EXPECT_THAT(Usable(), ElementsAre(1));
  EXPECT_EQ(usable_.capacity(), (Capacity{.workers = 1, .permits = 7}));
  EXPECT_EQ(usable_.least_permits(), 7);
  Lose(1);
  EXPECT_THAT(Usable(), ElementsAre());
}

TEST_F(UsableWorkersTest, AnUpdateWithoutChangesIsNoNewVersion) {
  Register(1, 1);
  Connect(1);
  Usable();
  const uint64_t version = usable_.version();
  Usable();
  EXPECT_EQ(usable_.version(), version);
  records_.Add(WorkerId());  // the format of the journal
  Usable();
  EXPECT_GT(usable_.version(), version);
}

TEST_F(UsableWorkersTest, KnowsWhetherSomeAreColocated) {
  Register(1, 1);
  Register(2, 1, {"COLOCATED"});
  Connect(1);
  Usable();
  EXPECT_FALSE(usable_.some_colocated());
  Connect(2);
  Usable();
  EXPECT_TRUE(usable_.some_colocated());
  Connect(2, false);
  Usable();
  EXPECT_FALSE(usable_.some_colocated());
}

TEST_F(UsableWorkersTest, UpdatesGiveTheListThatIsComputedAnew) {
  std::mt19937_64 random(1);
  for (int step = 0; step < 5000; ++step) {
    const uint64_t id = 1 + random() % 12;
    const bool known = state_.FindWorker(WorkerId(id)) != nullptr;
    switch (random() % 5) {
      case 0:
        if (known) Drain(id);
        break;
      case 1:
        if (known) Lose(id);
        break;
      case 2:
        Connect(id, random() % 3 > 0);
        break;
      default:
        Register(id, 1 + static_cast<int32_t>(random() % 3));
    }
    if (random() % 3 > 0) continue;
    Usable(random() % 4 == 0 ? std::vector{WorkerId(1 + random() % 12)} : std::vector<WorkerId>());
    ASSERT_TRUE(usable_ == usable_.Computed()) << "step " << step;
    ASSERT_EQ(usable_.capacity(), CapacityOf(usable_.all())) << "step " << step;
  }
}

}  // namespace
}  // namespace penstock::control
