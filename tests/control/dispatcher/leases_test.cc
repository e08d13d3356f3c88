// SPDX-License-Identifier: Apache-2.0
// Whom the dispatcher takes for dead: the core by a clock that the test sets.
#include <algorithm>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/dispatcher/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/deaf.h"

namespace penstock::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LeasesTest : public ::testing::Test {
 protected:
  LeasesTest() { Open(absl::Seconds(60), OpenMemoryJournal()); }

  void Open(absl::Duration client_timeout, std::unique_ptr<Journal> journal) {
    CoreOptions options;
    options.client_timeout = client_timeout;
    options.worker_timeout = absl::Seconds(10);
    options.now = [this] { return now_; };
    options.random = [this] { return ++random_; };
    options.port_refuses = [this](const std::string&) { return port_refuses_(); };
    options.events = events_;
    core_ = Core::Open(std::move(options), std::move(journal)).value();
  }

  std::shared_ptr<WorkerPeer> Join(uint64_t id) {
    std::shared_ptr<WorkerPeer> peer = core_->OpenWorker(std::make_shared<Deaf<WorkerDown>>());
    core_->OnMessage(peer, WorkerHello{.worker = WorkerId(id), .address = "worker:1"});
    return peer;
  }

  // The sweeper's seconds, in which only `living` is heard.
  void Pass(int seconds, const std::shared_ptr<WorkerPeer>& living) {
    for (int second = 0; second < seconds; ++second) {
      now_ += absl::Seconds(1);
      core_->OnMessage(living, WorkerHeartbeat{});
      core_->Sweep();
    }
  }

  std::vector<uint64_t> Workers() {
    std::vector<uint64_t> ids;
    core_->GetStatus([&ids](const absl::StatusOr<DispatcherStatus>& status) {
      for (const WorkerStatus& worker : status->workers) ids.push_back(worker.worker.value());
    });
    return ids;
  }

  size_t DeadClients() const {
    const std::vector<Event> all = events_->All();
    return static_cast<size_t>(std::count_if(
        all.begin(), all.end(), [](const Event& event) { return event.name == "client_dead"; }));
  }

  const std::shared_ptr<CapturedEvents> events_ = CapturedEvents::Make();
  absl::Time now_ = absl::UnixEpoch();
  uint64_t random_ = 0;
  std::function<bool()> port_refuses_ = [] { return false; };
  std::unique_ptr<Core> core_;
};

TEST_F(LeasesTest, RunOutWhileAProbeTakesLong) {
  const auto living = Join(1);
  const auto silent = Join(2);
  const auto broken = Join(3);
  core_->OnClosed(broken);
  core_->Sweep();
  port_refuses_ = [&] {
    Pass(9, living);
    EXPECT_THAT(Workers(), ElementsAre(1, 2, 3));
    Pass(1, living);
    EXPECT_THAT(Workers(), ElementsAre(1));
    return true;  // of one that is gone already
  };
  core_->ProbeBrokenWorkers();
  EXPECT_THAT(Workers(), ElementsAre(1));
}

TEST_F(LeasesTest, AWorkerThatIsBackBeforeItsProbeEndsLives) {
  core_->OnClosed(Join(1));
  port_refuses_ = [&] {
    Join(1);
    return true;
  };
  core_->ProbeBrokenWorkers();
  EXPECT_THAT(Workers(), ElementsAre(1));
}

TEST_F(LeasesTest, AllBrokenWorkersAreProbedAtOnce) {
  for (uint64_t id = 1; id <= 6; ++id) core_->OnClosed(Join(id));
  port_refuses_ = [] { return true; };
  core_->ProbeBrokenWorkers();
  EXPECT_THAT(Workers(), IsEmpty());
}

TEST_F(LeasesTest, StartAnewWhenTheDispatcherStoodStill) {
  const auto living = Join(1);
  Join(2);
  core_->Sweep();
  now_ += absl::Hours(1);
  core_->Sweep();
  Pass(9, living);
  EXPECT_THAT(Workers(), ElementsAre(1, 2));
  Pass(1, living);
  EXPECT_THAT(Workers(), ElementsAre(1));
}

// Clients go by the lease that they were told last.
TEST_F(LeasesTest, ALongerOneOfAnEarlierLifeIsWaitedFor) {
  const std::string folder = ::testing::TempDir() + "/leases_of_an_earlier_life";
  std::filesystem::remove_all(folder);
  Open(absl::Seconds(60), OpenSqliteJournal(folder).value());
  core_->RegisterDataset({.dataset_id = "numbers"}, [](const auto&) {});
  std::promise<JobAnswer> job;
  core_->GetOrCreateJob({.name = "job", .dataset_id = "numbers"},
                        [&](const auto& answer) { job.set_value(answer.value()); });
  const JobAnswer its = job.get_future().get();
  core_->OnMessage(core_->OpenClient(std::make_shared<Deaf<ClientDown>>()),
                   ClientHello{.job = its.job,
                               .client = ClientId(5),
                               .incarnation = Incarnation(1),
                               .state = std::nullopt,
                               .token = its.token});
  core_.reset();
  Open(absl::Seconds(10), OpenSqliteJournal(folder).value());
  const auto living = Join(1);
  Pass(59, living);
  EXPECT_EQ(DeadClients(), 0u);
  Pass(1, living);
  EXPECT_EQ(DeadClients(), 1u);
}

}  // namespace
}  // namespace penstock::control
