// SPDX-License-Identifier: Apache-2.0
// Which processes the dispatcher declares dead. Tests the core with a clock that the test sets.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/dispatcher/core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/deaf.h"
#include "tests/control/dispatcher/fixed_tokens.h"
#include "tests/eventually.h"

namespace penstock::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Accepts records and makes nothing durable while it stands still, like the journal of a dispatcher
// whose folder another dispatcher has taken, or whose file server is gone.
class StandingJournal final : public Journal {
 public:
  Recovered TakeRecovered() override { return {}; }
  absl::Status Start(Durable durable) override {
    durable_ = std::move(durable);
    return absl::OkStatus();
  }
  void Append(uint64_t sequence, std::string /*record*/) override {
    last_ = sequence;
    if (!stands) durable_(last_);
  }
  void GoOn() {
    stands = false;
    durable_(last_);
  }
  void Snapshot(uint64_t, SnapshotChanges) override {}
  absl::Status WaitDurable(uint64_t) override { return absl::OkStatus(); }
  absl::Status status() const override { return absl::OkStatus(); }
  std::string name() const override { return "standing"; }
  uint64_t last() const { return last_; }

  bool stands = false;

 private:
  uint64_t last_ = 0;
  Durable durable_;
};

// Counts the messages that renew a client's lease.
class Renewed final : public ClientStreamWriter {
 public:
  void Send(ClientDown message, uint64_t) override {
    if (std::holds_alternative<Welcome>(message)) ++welcomes;
    if (const auto* answer = std::get_if<ClientHeartbeatAnswer>(&message)) {
      ++answers;
      heartbeat = std::max(heartbeat, answer->counter);
    }
  }
  void Finish(const absl::Status&) override {}

  int welcomes = 0;
  int answers = 0;
  uint64_t heartbeat = 0;  // the latest that was answered
};

class LeasesTest : public ::testing::Test {
 protected:
  LeasesTest() { Open(absl::Seconds(60), OpenMemoryJournal()); }

  void Open(absl::Duration client_timeout, std::unique_ptr<Journal> journal,
            absl::Duration worker_timeout = absl::Seconds(10)) {
    CoreOptions options;
    options.client_timeout = client_timeout;
    options.worker_timeout = worker_timeout;
    options.now = [this] {
      if (at_now_) std::exchange(at_now_, nullptr)();
      return now_;
    };
    options.random = [this] { return ++random_; };
    options.job_tokens = FixedTokens;
    options.port_refuses = [this](const std::string&) { return port_refuses_(); };
    options.events = events_;
    core_ = Core::Open(std::move(options), std::move(journal)).value();
  }

  std::shared_ptr<WorkerPeer> Join(uint64_t id) {
    std::shared_ptr<WorkerPeer> peer = core_->OpenWorker(std::make_shared<Deaf<WorkerDown>>());
    core_->OnMessage(peer, WorkerHello{.worker = WorkerId(id), .address = "worker:1"});
    return peer;
  }

  // Lets the sweeper's seconds pass; only `living` is heard.
  void Pass(int seconds, const std::shared_ptr<WorkerPeer>& living) {
    for (int second = 0; second < seconds; ++second) {
      now_ += absl::Seconds(1);
      core_->OnMessage(living, WorkerHeartbeat{});
      core_->Sweep();
    }
  }

  std::vector<uint64_t> Workers() {
    std::promise<DispatcherStatus> said;  // set when all earlier records are durable
    core_->GetStatus([&said](const auto& status) { said.set_value(status.value()); });
    std::vector<uint64_t> ids;
    for (const WorkerStatus& worker : said.get_future().get().workers)
      ids.push_back(worker.worker.value());
    return ids;
  }

  size_t DeadClients() const {
    const std::vector<Event> all = events_->All();
    return static_cast<size_t>(std::count_if(
        all.begin(), all.end(), [](const Event& event) { return event.name == "client_dead"; }));
  }

  const std::shared_ptr<CapturedEvents> events_ = CapturedEvents::Make();
  absl::Time now_ = absl::UnixEpoch();
  std::function<void()> at_now_;  // called once
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
    return true;  // the process is already gone
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

TEST_F(LeasesTest, OfManyWorkersAtOnceAreTwiceAsLong) {
  const auto living = Join(1000);
  for (uint64_t id = 1; id <= 32; ++id) Join(id);
  Pass(10, living);
  EXPECT_THAT(Workers(), ElementsAre(1000));
  for (uint64_t id = 101; id <= 140; ++id) {  // each sweep finds one more that is silent for 10 s
    Join(id);
    now_ += absl::Milliseconds(100);
    core_->Sweep();
  }
  Pass(15, living);
  EXPECT_EQ(Workers().size(), 41u);
  Pass(5, living);
  EXPECT_THAT(Workers(), ElementsAre(1000));
}

TEST_F(LeasesTest, AWorkerThatStaysAwayIsProbedLessAndLess) {
  core_->OnClosed(Join(1));
  int probes = 0;
  port_refuses_ = [&] {
    ++probes;
    return false;
  };
  for (int i = 0; i < 20; ++i) {  // at 0, 0.1, 0.3, 0.7 and 1.5 s
    core_->ProbeBrokenWorkers();
    now_ += absl::Milliseconds(100);
  }
  EXPECT_EQ(probes, 5);
}

TEST_F(LeasesTest, ProbesOfAFleetThatIsAwayAreSpread) {
  constexpr int kFleet = 1000;
  for (uint64_t id = 1; id <= kFleet; ++id) core_->OnClosed(Join(id));
  int probes = 0;
  port_refuses_ = [&] {
    ++probes;
    return true;
  };
  core_->ProbeBrokenWorkers();
  EXPECT_LT(probes, kFleet / 10);
  for (int i = 0; i < 50; ++i) core_->ProbeBrokenWorkers();
  EXPECT_THAT(Workers(), IsEmpty());
}

TEST_F(LeasesTest, RestartWhenTheDispatcherWasSuspended) {
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

TEST_F(LeasesTest, ShortOnesRestartAfterASlightlyLongerSuspension) {
  Open(absl::Seconds(60), OpenMemoryJournal(), absl::Seconds(2));
  const auto living = Join(1);
  Join(2);
  core_->Sweep();
  now_ += absl::Milliseconds(2500);
  core_->Sweep();
  EXPECT_THAT(Workers(), ElementsAre(1, 2));
  Pass(2, living);
  EXPECT_THAT(Workers(), ElementsAre(1));
}

TEST_F(LeasesTest, HoldAsLongAsAMessageWaitsForTheLock) {
  const auto living = Join(1);
  const auto waiting = Join(2);
  Join(3);
  Pass(9, living);
  now_ += absl::Seconds(1);
  core_->OnMessage(living, WorkerHeartbeat{});
  std::thread beat;
  at_now_ = [&] {  // the sweep holds the lock
    beat = std::thread([&] { core_->OnMessage(waiting, WorkerHeartbeat{}); });
    EXPECT_TRUE(Eventually([&] { return waiting->arriving > 0; }));
  };
  core_->Sweep();
  beat.join();
  EXPECT_THAT(Workers(), ElementsAre(1, 2));
}

// More messages come than can be handled: a heartbeat may still be waiting.
TEST_F(LeasesTest, HoldWhileTheDispatcherIsAlwaysBusy) {
  const auto living = Join(1);
  Join(2);
  Pass(1, living);
  std::promise<void> goes_on;
  std::promise<void> begun;
  std::thread busy([&] {
    core_->GetStatus([&](const auto&) {
      begun.set_value();
      goes_on.get_future().wait();
    });
  });
  begun.get_future().wait();
  for (int second = 0; second < 30; ++second) {
    now_ += absl::Seconds(1);
    core_->Sweep();
  }
  goes_on.set_value();
  busy.join();
  EXPECT_THAT(Workers(), ElementsAre(1, 2));
  Pass(9, living);
  EXPECT_THAT(Workers(), ElementsAre(1, 2));
  Pass(2, living);
  EXPECT_THAT(Workers(), ElementsAre(1));
}

// A thousand workers that come back take longer than the lease of each.
TEST_F(LeasesTest, OfJournaledWorkersBeginWhenTheyComeBack) {
  const std::string folder = ::testing::TempDir() + "/leases_of_those_in_the_journal";
  std::filesystem::remove_all(folder);
  Open(absl::Seconds(60), OpenSqliteJournal(folder).value());
  for (uint64_t id = 1; id <= 3; ++id) Join(id);
  core_.reset();
  Open(absl::Seconds(60), OpenSqliteJournal(folder).value());
  for (int second = 0; second < 100; ++second) {
    now_ += absl::Seconds(1);
    core_->Sweep();
  }
  const auto first = Join(1);
  Pass(9, first);
  Join(2);
  Pass(9, first);
  EXPECT_THAT(Workers(), ElementsAre(1, 2, 3));
  Pass(1, first);
  EXPECT_THAT(Workers(), ElementsAre(1));
}

TEST_F(LeasesTest, OnlyWorkersOfTheJournalThatAreNotBackAreProbed) {
  const std::string folder = ::testing::TempDir() + "/probes_of_those_in_the_journal";
  std::filesystem::remove_all(folder);
  Open(absl::Seconds(60), OpenSqliteJournal(folder).value());
  for (uint64_t id = 1; id <= 3; ++id) Join(id);
  core_.reset();
  Open(absl::Seconds(60), OpenSqliteJournal(folder).value());
  int probes = 0;
  port_refuses_ = [&] {
    ++probes;
    return true;
  };
  const auto back = Join(1);
  core_->ProbeBrokenWorkers();
  EXPECT_EQ(probes, 2);
  EXPECT_THAT(Workers(), ElementsAre(1));
  core_->OnMessage(back, WorkerLeave{});
  core_->ProbeBrokenWorkers();
  EXPECT_EQ(probes, 2) << "a worker that left is not probed";
}

class ClientLeasesTest : public LeasesTest {
 protected:
  // Starts another dispatcher on the journal of the one before.
  void Restart(absl::Duration client_timeout) {
    core_.reset();
    Open(client_timeout, OpenSqliteJournal(folder_).value());
  }
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    Restart(absl::Seconds(60));
    core_->RegisterDataset({.dataset_id = "numbers"}, [](const auto&) {});
    std::promise<JobAnswer> job;
    core_->GetOrCreateJob({.name = "job", .dataset_id = "numbers"},
                          [&](const auto& answer) { job.set_value(answer.value()); });
    job_ = job.get_future().get();
  }
  std::shared_ptr<ClientPeer> Read(uint64_t id) {
    const auto peer = core_->OpenClient(std::make_shared<Deaf<ClientDown>>());
    core_->OnMessage(peer, ClientHello{.job = job_.job,
                                       .client = ClientId(id),
                                       .incarnation = Incarnation(1),
                                       .state = std::nullopt,
                                       .token = job_.token});
    return peer;
  }
  // Lets the sweeper's seconds pass; only `living` is heard.
  void PassReading(int seconds, const std::shared_ptr<ClientPeer>& living) {
    for (int second = 0; second < seconds; ++second) {
      now_ += absl::Seconds(1);
      core_->OnMessage(living, ClientHeartbeat{});
      core_->Sweep();
    }
  }

  const std::string folder_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  JobAnswer job_;
};

// The clients go by the lease that they got last.
TEST_F(ClientLeasesTest, ALongerOneOfAnEarlierLifeIsWaitedFor) {
  Read(5);
  Restart(absl::Seconds(10));
  const auto living = Join(1);
  Pass(59, living);
  EXPECT_EQ(DeadClients(), 0u);
  Pass(1, living);
  EXPECT_EQ(DeadClients(), 1u);
}

// A thousand clients that come back take longer than the lease of each.
TEST_F(ClientLeasesTest, OfJournaledClientsBeginWhenTheyComeBack) {
  for (uint64_t id = 5; id <= 7; ++id) Read(id);
  Restart(absl::Seconds(60));
  now_ += absl::Seconds(100);
  core_->Sweep();
  const auto first = Read(5);
  PassReading(59, first);
  Read(6);
  PassReading(59, first);
  EXPECT_EQ(DeadClients(), 0u);
  PassReading(1, first);
  EXPECT_EQ(DeadClients(), 2u);
}

TEST_F(ClientLeasesTest, HoldAsLongAsAMessageWaitsForTheLock) {
  const auto living = Read(5);
  const auto waiting = Read(6);
  Read(7);
  PassReading(59, living);
  now_ += absl::Seconds(1);
  core_->OnMessage(living, ClientHeartbeat{});
  std::thread report;
  at_now_ = [&] {  // the sweep holds the lock
    report = std::thread([&] { core_->OnMessage(waiting, Report{}); });
    EXPECT_TRUE(Eventually([&] { return waiting->arriving > 0; }));
  };
  core_->Sweep();
  report.join();
  EXPECT_EQ(DeadClients(), 1u);
}

TEST_F(ClientLeasesTest, AreRenewedByAHeartbeatWhileASweepHoldsTheLock) {
  const auto living = Read(5);
  const auto late = Read(6);
  Read(7);
  PassReading(59, living);
  now_ += absl::Seconds(1);
  core_->OnMessage(living, ClientHeartbeat{});
  std::thread heartbeat;
  std::atomic<bool> handled = false;
  at_now_ = [&] {  // the sweep holds the lock
    heartbeat = std::thread([&] {
      core_->OnMessage(late, ClientHeartbeat{});
      handled = true;
    });
    EXPECT_TRUE(Eventually([&] { return handled.load(); }));
  };
  core_->Sweep();
  heartbeat.join();
  EXPECT_EQ(DeadClients(), 1u);
}

TEST_F(ClientLeasesTest, AreNotRenewedByHeartbeatsOfAnEarlierStream) {
  const auto earlier = Read(5);
  Read(5);
  PassReading(60, earlier);
  EXPECT_EQ(DeadClients(), 1u);
}

class RenewingTest : public LeasesTest {
 protected:
  RenewingTest() {
    auto journal = std::make_unique<StandingJournal>();
    journal_ = journal.get();
    Open(absl::Seconds(80), std::move(journal));
    core_->RegisterDataset({.dataset_id = "numbers"}, [](const auto&) {});
    core_->GetOrCreateJob({.name = "job", .dataset_id = "numbers"},
                          [&](const auto& answer) { job_ = answer.value(); });
    peer_ = Hello();
  }
  std::shared_ptr<ClientPeer> Hello() {
    auto peer = core_->OpenClient(inbox_);
    core_->OnMessage(peer, ClientHello{.job = job_.job,
                                       .client = ClientId(5),
                                       .incarnation = Incarnation(1),
                                       .state = std::nullopt,
                                       .token = job_.token});
    return peer;
  }
  void Beat(int seconds) {
    for (int second = 0; second < seconds; ++second) {
      now_ += absl::Seconds(1);
      core_->OnMessage(peer_, ClientHeartbeat{.counter = ++beats_});
      core_->Sweep();
    }
  }

  const std::shared_ptr<Renewed> inbox_ = std::make_shared<Renewed>();
  StandingJournal* journal_ = nullptr;
  JobAnswer job_;
  std::shared_ptr<ClientPeer> peer_;
  uint64_t beats_ = 0;
};

// Another dispatcher may have the folder and count the time.
TEST_F(RenewingTest, NoHeartbeatRenewsALeaseBeforeALaterRecordIsDurable) {
  Beat(30);
  EXPECT_GE(inbox_->heartbeat, 19u);
  journal_->stands = true;
  const uint64_t last = beats_;
  const uint64_t records = journal_->last();
  Beat(200);
  EXPECT_LE(inbox_->heartbeat, last);
  EXPECT_LE(journal_->last(), records + 1) << "one waits, and others would behind it";
  EXPECT_LT(inbox_->answers, 45) << "a dispatcher that does not answer is given up";
  journal_->GoOn();
  Beat(12);
  EXPECT_GE(inbox_->heartbeat, beats_ - 11);
  EXPECT_EQ(DeadClients(), 0u);
}

TEST_F(RenewingTest, NoWelcomeGivesALeaseBeforeALaterRecordIsDurable) {
  EXPECT_EQ(inbox_->welcomes, 1);
  journal_->stands = true;
  peer_ = Hello();
  EXPECT_EQ(inbox_->welcomes, 1);
  journal_->GoOn();
  EXPECT_EQ(inbox_->welcomes, 2);
}

TEST_F(RenewingTest, ThatTakesAFewRecordsForAllClients) {
  const uint64_t records = journal_->last();
  Beat(80);
  EXPECT_GE(inbox_->heartbeat, beats_ - 11);
  EXPECT_LE(journal_->last(), records + 10);
  EXPECT_EQ(inbox_->answers, 80) << "all are answered";
}

// Such records change nothing.
TEST_F(RenewingTest, AJournalWithThemIsRead) {
  const std::string folder = ::testing::TempDir() + "/leases_renewed";
  std::filesystem::remove_all(folder);
  Open(absl::Seconds(2), OpenSqliteJournal(folder).value());
  core_->RegisterDataset({.dataset_id = "numbers"}, [](const auto&) {});
  std::promise<JobAnswer> job;
  core_->GetOrCreateJob({.name = "job", .dataset_id = "numbers"},
                        [&](const auto& answer) { job.set_value(answer.value()); });
  job_ = job.get_future().get();
  peer_ = Hello();
  const uint64_t records = core_->sequence();
  Beat(5);
  EXPECT_GT(core_->sequence(), records);
  core_.reset();
  Open(absl::Seconds(2), OpenSqliteJournal(folder).value());
  std::promise<bool> known;
  core_->GetStatus([&](const absl::StatusOr<DispatcherStatus>& status) {
    known.set_value(status.ok() && status->jobs.size() == 1);
  });
  EXPECT_TRUE(known.get_future().get());
}

}  // namespace
}  // namespace penstock::control
