// SPDX-License-Identifier: Apache-2.0
// When readers get the list of workers.
#include <string>

#include "gtest/gtest.h"
#include "tests/control/dispatcher/core_fixture.h"

namespace penstock::control {
namespace {

class MembershipTest : public CoreTest {
 protected:
  // Worker 1 connects and lists the partitions it holds.
  void Hello(Worker& worker, const std::string& address, std::vector<PlacedPartition> held = {}) {
    if (worker.peer != nullptr) core_->OnClosed(worker.peer);
    worker.peer = core_->OpenWorker(worker.inbox);
    core_->OnMessage(worker.peer,
                     WorkerHello{.worker = WorkerId(1), .address = address, .held = held});
  }
};

// When each worker's hello sent the whole list to each reader, a large fleet took hours to come
// back.
TEST_F(MembershipTest, IsSentOnlyForAHelloThatChangesSomething) {
  Start();
  const JobAnswer job = Job("job", Register(1), {.mode = ShardingPolicy::kDynamic});
  Worker worker;
  Hello(worker, "here");
  const Reader reader = Come(job, 0, 1);
  const auto assign = worker.inbox->Take<Assign>();
  ASSERT_TRUE(assign.has_value());
  while (reader.inbox->Take<Membership>()) {
  }
  Hello(worker, "here", {assign->of});
  EXPECT_FALSE(reader.inbox->Take<Membership>().has_value());
  Hello(worker, "elsewhere", {assign->of});
  const auto membership = reader.inbox->Take<Membership>();
  ASSERT_TRUE(membership.has_value());
  ASSERT_EQ(membership->workers.size(), 1u);
  EXPECT_EQ(membership->workers[0].address, "elsewhere");
}

}  // namespace
}  // namespace penstock::control
