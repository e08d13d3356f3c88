// SPDX-License-Identifier: Apache-2.0
// Heartbeats of many clients that come at the same time as other events.
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/dispatcher/core.h"
#include "control/dispatcher/worker_manager.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/deaf.h"
#include "tests/control/dispatcher/fixed_tokens.h"
#include "tests/control/dispatcher/inbox.h"

namespace penstock::control {
namespace {

constexpr int kClients = 4;
constexpr int kBeats = 500;  // of each client

class CountedAnswers final : public ClientStreamWriter {
 public:
  void Send(ClientDown message, uint64_t) override {
    if (std::holds_alternative<ClientHeartbeatAnswer>(message)) ++answers;
  }
  void Finish(const absl::Status&) override {}

  std::atomic<int> answers = 0;
};

class HeartbeatsTest : public ::testing::Test {
 protected:
  HeartbeatsTest() {
    CoreOptions options;
    options.client_timeout = absl::Seconds(3);
    options.now = [this] { return absl::FromUnixMillis(milliseconds_.load()); };
    options.random = [this] { return ++random_; };
    options.job_tokens = FixedTokens;
    options.port_refuses = [](const std::string&) { return false; };
    options.events = events_;
    core_ = Core::Open(std::move(options), OpenMemoryJournal()).value();
    core_->RegisterDataset({.dataset_id = "numbers"}, [](const auto&) {});
    core_->GetOrCreateJob({.name = "job", .dataset_id = "numbers"},
                          [&](const auto& answer) { job_ = answer.value(); });
  }
  std::shared_ptr<ClientPeer> Read(uint64_t id, std::shared_ptr<ClientStreamWriter> writer) {
    auto peer = core_->OpenClient(std::move(writer));
    core_->OnMessage(peer, ClientHello{.job = job_.job,
                                       .client = ClientId(id),
                                       .incarnation = Incarnation(1),
                                       .state = std::nullopt,
                                       .token = job_.token});
    return peer;
  }
  // A worker joins, has partitions, and leaves.
  void JoinAndLeave(uint64_t id) {
    const auto worker = core_->OpenWorker(std::make_shared<Deaf<WorkerDown>>());
    core_->OnMessage(worker, WorkerHello{.worker = WorkerId(id), .address = "worker:1"});
    core_->OnMessage(worker, WorkerLeave{});
    core_->OnClosed(worker);
  }
  size_t DeadClients() const {
    size_t dead = 0;
    for (const Event& event : events_->All()) dead += event.name == "client_dead" ? 1 : 0;
    return dead;
  }

  const std::shared_ptr<CapturedEvents> events_ = CapturedEvents::Make();
  std::atomic<int64_t> milliseconds_ = 0;
  std::atomic<uint64_t> random_ = 0;
  std::unique_ptr<Core> core_;
  JobAnswer job_;
};

TEST_F(HeartbeatsTest, AreAllAnsweredDuringSweepsMovesAndStatuses) {
  std::vector<std::shared_ptr<CountedAnswers>> writers;
  std::vector<std::thread> clients;
  std::atomic<int> running = kClients;
  for (uint64_t id = 1; id <= kClients; ++id) {
    writers.push_back(std::make_shared<CountedAnswers>());
    clients.emplace_back([&, peer = Read(id, writers.back())] {
      for (int64_t count = 1; count <= kBeats; ++count) {
        ClientHeartbeat beat{.counter = static_cast<uint64_t>(count)};
        beat.links = {{.worker = WorkerId(static_cast<uint64_t>(count % 7 + 1)),
                       .protocol = "tcp",
                       .open = count % 3 > 0,
                       .elements = count,
                       .down = count % 3 == 0}};
        beat.only_changed_links = count > 1;
        beat.steps = {count, count * absl::Milliseconds(1), {}};
        beat.at_quota = count % 2 == 0;
        core_->OnMessage(peer, std::move(beat));
        ++milliseconds_;
      }
      --running;
    });
  }
  for (uint64_t turn = 1; running > 0; ++turn) {
    core_->Sweep();
    JoinAndLeave(turn % 7 + 1);
    core_->GetStatus([](const auto& status) { EXPECT_TRUE(status.ok()); });
  }
  for (std::thread& client : clients) client.join();
  core_->Sweep();
  EXPECT_EQ(DeadClients(), 0u);
  core_.reset();  // sends the answers that wait for a record
  for (const auto& writer : writers) EXPECT_EQ(writer->answers, kBeats);
}

TEST_F(HeartbeatsTest, TellWorkersHowOftenToSendBookmarks) {
  const auto inbox = std::make_shared<Inbox<WorkerStreamWriter, WorkerDown>>();
  const auto worker = core_->OpenWorker(inbox);
  core_->OnMessage(worker,
                   WorkerHello{.worker = WorkerId(1), .address = "worker:1", .permits = 50});
  const auto reader = Read(1, std::make_shared<Deaf<ClientDown>>());
  int64_t placed = 0;
  while (inbox->Take<Assign>().has_value()) ++placed;
  EXPECT_GE(placed, 1);
  core_->OnMessage(worker, WorkerHeartbeat{.counter = 3});
  EXPECT_EQ(inbox->Take<WorkerHeartbeatAnswer>(),
            (WorkerHeartbeatAnswer{3, absl::Seconds(placed) / kBookmarksPerSecond}));
  core_->OnClosed(worker);
}

TEST_F(HeartbeatsTest, OfManyWorkersComeLessOften) {
  const auto inbox = std::make_shared<Inbox<WorkerStreamWriter, WorkerDown>>();
  std::vector<std::shared_ptr<WorkerPeer>> workers;
  const auto join_until = [&](size_t many) {
    while (workers.size() < many) {
      workers.push_back(core_->OpenWorker(inbox));
      core_->OnMessage(
          workers.back(),
          WorkerHello{.worker = WorkerId(workers.size()), .address = "worker:1", .permits = 1});
    }
  };
  const auto interval = [&] {
    core_->OnMessage(workers[0], WorkerHeartbeat{.counter = 1});
    return inbox->Take<WorkerHeartbeatAnswer>()->heartbeat_interval;
  };
  join_until(10);
  EXPECT_EQ(interval(), absl::ZeroDuration());
  join_until(2 * kHeartbeatsPerSecond);
  EXPECT_EQ(interval(), absl::Seconds(2));
  for (size_t i = 1; i < kHeartbeatsPerSecond; ++i) core_->OnClosed(workers[i]);
  EXPECT_EQ(interval(), absl::Seconds(2)) << "they may come back at any time";
  for (size_t i = kHeartbeatsPerSecond; i < workers.size(); ++i) core_->OnClosed(workers[i]);
  core_->OnClosed(workers[0]);
}

TEST_F(HeartbeatsTest, OfManyWorkersMayBeMissingForLonger) {
  const auto inbox = std::make_shared<Inbox<WorkerStreamWriter, WorkerDown>>();
  std::vector<std::shared_ptr<WorkerPeer>> workers;
  for (uint64_t id = 1; id <= 4 * kHeartbeatsPerSecond; ++id) {
    workers.push_back(core_->OpenWorker(inbox));
    core_->OnMessage(workers.back(),
                     WorkerHello{.worker = WorkerId(id), .address = "worker:1", .permits = 1});
  }
  // All but the first send a heartbeat each 4 s.
  for (int sweep = 1; sweep <= 17; ++sweep) {
    milliseconds_ += 1000;
    for (size_t i = 1; sweep % 4 == 0 && i < workers.size(); ++i)
      core_->OnMessage(workers[i], WorkerHeartbeat{.counter = 1});
    core_->Sweep();
    EXPECT_EQ(core_->NumWorkers(), workers.size() - (sweep < 16 ? 0 : 1)) << sweep << " s";
  }
  for (const auto& worker : workers) core_->OnClosed(worker);
}

TEST(HeartbeatTimes, AreThoseOfTheSettingsInASmallFleet) {
  for (const HeartbeatTimes& configured : {HeartbeatTimes{kHeartbeatInterval, kWorkerTimeout},
                                           HeartbeatTimes{absl::Seconds(1), absl::Seconds(3)}}) {
    EXPECT_EQ(HeartbeatTimesOf(0, configured), configured);
    EXPECT_EQ(HeartbeatTimesOf(kHeartbeatsPerSecond, configured), configured);
  }
}

TEST(HeartbeatTimes, GrowWithTheFleet) {
  const HeartbeatTimes configured = {kHeartbeatInterval, kWorkerTimeout};
  const auto of = [&](double seconds) {
    return HeartbeatTimesOf(static_cast<size_t>(seconds * kHeartbeatsPerSecond), configured);
  };
  EXPECT_EQ(of(2), (HeartbeatTimes{absl::Seconds(2), kWorkerTimeout}));
  EXPECT_EQ(of(4), (HeartbeatTimes{absl::Seconds(4), absl::Seconds(16)}));
}

TEST(HeartbeatTimes, StayBelowTheTimeoutOfAFleetThatBecomesSmall) {
  const HeartbeatTimes times = HeartbeatTimesOf(1'000'000, {kHeartbeatInterval, kWorkerTimeout});
  EXPECT_EQ(times, (HeartbeatTimes{kWorkerTimeout / 2, 2 * kWorkerTimeout}));
}

TEST_F(HeartbeatsTest, AreAnsweredUnlessASweepTakesTheLease) {
  std::map<std::string, std::shared_ptr<CountedAnswers>> writers;
  for (uint64_t id = 1; id <= 200; ++id) {
    const auto writer = std::make_shared<CountedAnswers>();
    writers[absl::StrCat(absl::Hex(id))] = writer;
    const auto peer = Read(id, writer);
    for (int second = 1; second <= 2; ++second) {
      milliseconds_ += 1000;
      core_->Sweep();
    }
    milliseconds_ += 1000;
    std::thread sweep([&] { core_->Sweep(); });
    core_->OnMessage(peer, ClientHeartbeat{.counter = 1});
    sweep.join();
    core_->OnMessage(peer, Leave{});
    core_->OnClosed(peer);
  }
  core_.reset();  // sends the answers that wait for a record
  std::map<std::string, int> dead;
  for (const Event& event : events_->All()) {
    if (event.name == "client_dead") ++dead[event.fields.at(0).second];
  }
  for (const auto& [client, writer] : writers)
    EXPECT_EQ(writer->answers + dead[client], 1) << "client " << client;
}

}  // namespace
}  // namespace penstock::control
