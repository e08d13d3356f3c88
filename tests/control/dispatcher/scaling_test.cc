// SPDX-License-Identifier: Apache-2.0
// From heartbeats to the estimate that users see. Tests the core with a clock that the test sets.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/dispatcher/core.h"
#include "control/observe/metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/deaf.h"
#include "tests/control/dispatcher/fixed_tokens.h"

namespace penstock::control {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class WantedWorkers : public ::testing::Test {
 protected:
  WantedWorkers() {
    CoreOptions options;
    options.worker_timeout = absl::Seconds(10);
    options.now = [this] {
      if (at_now_) std::exchange(at_now_, nullptr)();
      return now_;
    };
    options.random = [this] { return ++random_; };
    options.job_tokens = FixedTokens;
    options.port_refuses = [](const std::string&) { return false; };
    options.events = events_;
    options.check_kept = [] { return true; };
    core_ = Core::Open(std::move(options), OpenMemoryJournal()).value();
    worker_ = core_->OpenWorker(std::make_shared<Deaf<WorkerDown>>());
    core_->OnMessage(worker_, WorkerHello{.worker = WorkerId(1), .address = "worker:1"});
    core_->RegisterDataset({.dataset_id = "numbers"},
                           [](const auto& answer) { EXPECT_TRUE(answer.ok()) << answer.status(); });
    core_->GetOrCreateJob({.name = "train", .dataset_id = "numbers"}, [this](const auto& answer) {
      ASSERT_TRUE(answer.ok()) << answer.status();
      job_ = *answer;
    });
    client_ = Read();
  }

  // Opens a stream of the trainer's session.
  std::shared_ptr<ClientPeer> Read() {
    auto peer = core_->OpenClient(std::make_shared<Deaf<ClientDown>>());
    core_->OnMessage(peer, ClientHello{.job = job_.job,
                                       .client = ClientId(5),
                                       .incarnation = Incarnation(6),
                                       .token = job_.token});
    return peer;
  }

  // A trainer with steps of 0.1 s, a worker that takes 0.3 s for an element.
  void Pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now_ += absl::Seconds(1);
      steps_ += 10;
      core_->OnMessage(client_,
                       ClientHeartbeat{.steps = {steps_, steps_ * absl::Milliseconds(100), {}}});
      core_->OnMessage(worker_,
                       WorkerHeartbeat{.iterations = {{client_->iteration, steps_,
                                                       steps_ * absl::Milliseconds(300), 1}}});
      core_->Sweep();
    }
  }
  DispatcherStatus Status() {
    DispatcherStatus found;
    core_->GetStatus([&](const absl::StatusOr<DispatcherStatus>& status) { found = *status; });
    return found;
  }

  absl::Time now_ = absl::UnixEpoch();
  std::function<void()> at_now_;  // called once
  uint64_t random_ = 0;
  int64_t steps_ = 0;
  JobAnswer job_;
  std::shared_ptr<CapturedEvents> events_ = CapturedEvents::Make();
  std::unique_ptr<Core> core_;
  std::shared_ptr<WorkerPeer> worker_;
  std::shared_ptr<ClientPeer> client_;
};

TEST_F(WantedWorkers, AreAMetricALineOfTheLogWithItsInputsAndPartOfTheStatus) {
  const Gauge& metric = ProcessMetrics().GetGauge("penstock_dispatcher_wanted_workers", "");
  core_->Sweep();
  EXPECT_EQ(metric.value(), 0);
  EXPECT_EQ(Status().wanted_workers, 0);
  Pass(10);
  EXPECT_EQ(metric.value(), 3);  // 0.9 · 10 · 0.3 = 2.7
  const DispatcherStatus status = Status();
  EXPECT_EQ(status.wanted_workers, 3);
  EXPECT_DOUBLE_EQ(status.jobs[0].feed.wanted_per_s, 10);
  EXPECT_NEAR(status.jobs[0].feed.worker_per_s, 3.33, 0.01);
  EXPECT_NEAR(status.jobs[0].feed.workers, 2.7, 0.01);
  const Event event = events_->WaitFor("wanted_workers", absl::ZeroDuration());
  EXPECT_EQ(event.field("workers"), "3");
  EXPECT_EQ(event.field("there"), "1");
  EXPECT_THAT(event.field("why"), AllOf(HasSubstr("train: 10 elements/s wanted"),
                                        HasSubstr("3.333 a worker"), HasSubstr("2.70 workers")));
}

TEST_F(WantedWorkers, AreNotStartedByTheDispatcher) {
  Pass(10);
  EXPECT_EQ(core_->NumWorkers(), 1);
}

TEST_F(WantedWorkers, AreForgottenWithTheirReports) {
  Pass(10);
  core_->OnMessage(worker_, WorkerLeave{});
  now_ += absl::Seconds(5);
  core_->Sweep();
  EXPECT_EQ(Status().wanted_workers, 0);
  EXPECT_GT(Status().jobs[0].feed.wanted_per_s, 0);
  core_->OnMessage(client_, Leave{});
  now_ += absl::Seconds(30);
  core_->Sweep();
  EXPECT_EQ(Status().jobs[0].feed.wanted_per_s, 0);
}

// A heartbeat is handled without the core's lock.
TEST_F(WantedWorkers, DoNotCountATrainerThatLeavesOnANewStreamDuringItsHeartbeat) {
  Pass(10);
  EXPECT_GT(Status().jobs[0].feed.wanted_per_s, 0);
  const auto leave = [this] { core_->OnMessage(Read(), Leave{}); };
  at_now_ = [&] { at_now_ = leave; };  // the renewal of the lease looks at the clock first
  core_->OnMessage(client_, ClientHeartbeat{.steps = {steps_ + 10, absl::Seconds(11), {}}});
  now_ += absl::Seconds(30);
  core_->Sweep();
  EXPECT_EQ(Status().jobs[0].feed.wanted_per_s, 0);
}

}  // namespace
}  // namespace penstock::control
