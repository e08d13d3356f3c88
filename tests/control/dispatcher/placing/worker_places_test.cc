// SPDX-License-Identifier: Apache-2.0
// The places of workers in worker_addresses, which are the shards that they read.
#include <string>

#include "gtest/gtest.h"
#include "tests/control/dispatcher/core_fixture.h"

namespace penstock::control {
namespace {

class WorkerPlacesTest : public CoreTest {
 protected:
  void SetUp() override { Start({.worker_addresses = {"host", "host"}}); }
  // Connects the worker and returns its place.
  int64_t Hello(Worker& worker, uint64_t id) {
    worker.peer = core_->OpenWorker(worker.inbox);
    core_->OnMessage(worker.peer, WorkerHello{.worker = WorkerId(id),
                                              .address = absl::StrCat("host:", 1000 + id)});
    return recovered_.FindWorker(WorkerId(id))->place;
  }

  Worker first_, second_, third_;
};

TEST_F(WorkerPlacesTest, AWorkerThatReturnsKeepsItsPlace) {
  EXPECT_EQ(Hello(first_, 1), 0);
  EXPECT_EQ(Hello(second_, 2), 1);
  core_->OnClosed(first_.peer);
  core_->OnClosed(second_.peer);
  EXPECT_EQ(Hello(second_, 2), 1);  // although the first place is free
  EXPECT_EQ(Hello(first_, 1), 0);
}

TEST_F(WorkerPlacesTest, ANewWorkerTakesThePlaceOfOneThatIsNotConnected) {
  EXPECT_EQ(Hello(first_, 1), 0);
  EXPECT_EQ(Hello(second_, 2), 1);
  core_->OnClosed(first_.peer);
  EXPECT_EQ(Hello(third_, 3), 0);
  first_.peer = core_->OpenWorker(first_.inbox);
  core_->OnMessage(first_.peer, WorkerHello{.worker = WorkerId(1), .address = "host:1001"});
  ASSERT_TRUE(first_.inbox->finished.has_value());
  EXPECT_EQ(first_.inbox->finished->code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace penstock::control
