// SPDX-License-Identifier: Apache-2.0
// The parts of `penstock bench fleet`. The light peers are tested with a real dispatcher.
#include <cmath>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "bench/fleet/doors.h"
#include "bench/fleet/growth.h"
#include "bench/fleet/latencies.h"
#include "bench/fleet/run_fleet.h"
#include "bench/fleet/streamed_peer.h"
#include "bench/fleet/timers.h"
#include "control/dispatcher/server/probe.h"
#include "control/sync/condition.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/server.h"
#include "tests/eventually.h"

namespace penstock::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// --- Figures -----------------------------------------------------------------------------

TEST(GrowthExponent, IsOneForALinearCostAndTwoForASquare) {
  std::vector<CostOfSize> linear, square;
  for (const double size : {100., 300., 1000., 3000.}) {
    linear.push_back({size, 7 * size});
    square.push_back({size, 0.1 * size * size});
  }
  EXPECT_NEAR(GrowthExponent(linear), 1, 1e-9);
  EXPECT_NEAR(GrowthExponent(square), 2, 1e-9);
}

TEST(GrowthExponent, NeedsTwoSizesWithACost) {
  EXPECT_TRUE(std::isnan(GrowthExponent({})));
  EXPECT_TRUE(std::isnan(GrowthExponent({{100, 1}, {300, 0}})));
  EXPECT_TRUE(std::isnan(GrowthExponent({{100, 1}, {100, 2}})));
}

TEST(Fleet, TablesNameMissedBarsAndCostsThatGrowFasterThanTheFleet) {
  const FleetSize small{
      .workers = 100, .clients = 10, .figures = {{"loss", "ms", 1, 5}, {"CPU", "cores", 0.1}}};
  const FleetSize large{
      .workers = 1000, .clients = 100, .figures = {{"loss", "ms", 100, 5}, {"CPU", "cores", 1}}};
  EXPECT_THAT(TableOf(small), Not(HasSubstr("missed")));
  EXPECT_THAT(TableOf(large), HasSubstr("bar 5, missed"));
  const std::string growth = GrowthOf({small, large});
  EXPECT_THAT(growth, HasSubstr("2.00 of 2 sizes, worse than linear"));
  EXPECT_THAT(growth, HasSubstr("1.00 of 2 sizes\n"));
}

TEST(Latencies, HaveQuantilesWithinABucket) {
  Latencies latencies;
  for (int ms = 1; ms <= 100; ++ms) latencies.Add(absl::Milliseconds(ms));
  const std::vector<int64_t> counts = latencies.Take();
  EXPECT_GE(QuantileMs(counts, 0.5), 50);
  EXPECT_LE(QuantileMs(counts, 0.5), 50 * 1.1);
  EXPECT_GE(QuantileMs(counts, 0.99), 99);
  EXPECT_LE(QuantileMs(counts, 0.99), 99 * 1.1);
  EXPECT_TRUE(std::isnan(QuantileMs(latencies.Take(), 0.5)));
}

TEST(Latencies, CountTimesBeyondTheBucketsInTheLastOne) {
  Latencies latencies;
  latencies.Add(absl::Hours(1));
  latencies.Add(absl::ZeroDuration());
  const std::vector<int64_t> counts = latencies.Take();
  EXPECT_EQ(counts.front(), 1);
  EXPECT_EQ(counts.back(), 1);
}

// --- Parts of a load -----------------------------------------------------------------------

TEST(Doors, RefuseConnectionsOnceClosed) {
  auto doors = Doors::Start();
  ASSERT_TRUE(doors.ok()) << doors.status();
  const absl::StatusOr<std::string> first = (*doors)->Open(1), second = (*doors)->Open(258);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(*second, HasSubstr("127.1.1.2:"));
  EXPECT_FALSE(control::PortRefuses(*first));
  EXPECT_FALSE(control::PortRefuses(*second));
  (*doors)->Close(1);
  EXPECT_TRUE(control::PortRefuses(*first));
  EXPECT_FALSE(control::PortRefuses(*second));
}

// Notes each run, and asks for no other.
class NotedTask final : public Timers::Task {
 public:
  NotedTask(int number, Mutex& mu, Condition& changed, std::vector<int>& runs)
      : number_(number), mu_(mu), changed_(changed), runs_(runs) {}
  absl::Time Run(absl::Time /*now*/) override {
    MutexLock lock(mu_);
    runs_.push_back(number_);
    changed_.NotifyAll();
    return absl::InfiniteFuture();
  }

 private:
  const int number_;
  Mutex& mu_;
  Condition& changed_;
  std::vector<int>& runs_;
};

TEST(Timers, RunEachTaskOnceAtItsEarliestTime) {
  Mutex mu;
  Condition changed;
  std::vector<int> runs;
  NotedTask first(1, mu, changed, runs), second(2, mu, changed, runs);
  auto timers = Timers::Start();
  ASSERT_TRUE(timers.ok()) << timers.status();
  const absl::Time now = BootTime();
  (*timers)->Schedule(first, now + absl::Hours(1));
  (*timers)->Schedule(first, now + absl::Milliseconds(20));
  (*timers)->Schedule(first, now + absl::Hours(2));
  (*timers)->Schedule(second, now + absl::Milliseconds(40));
  MutexLock lock(mu);
  changed.Wait(lock, [&] { return runs.size() == 2; });
  EXPECT_THAT(runs, ElementsAre(1, 2));
  lock.unlock();
  (*timers)->Forget(first);
  (*timers)->Forget(second);
}

// --- Light peers ---------------------------------------------------------------------------

TEST(LightWorker, HoldsItsPlacementsUntilTheyAreTakenOrTheJournalIsAnother) {
  LightWorker worker(1, 4, "127.0.0.1:1");
  std::vector<control::WorkerUp> answers;
  const control::PlacedPartition of{IterationId(1), PartitionId(2), Placement(3), 7};
  const auto welcome = [&](uint64_t journal) {
    worker.OnMessage(control::WorkerWelcome{.life = {.journal = journal, .id = 1, .term = Term(1)}},
                     1, answers);
  };
  welcome(7);
  worker.OnMessage(control::Assign{.of = of}, 2, answers);
  EXPECT_EQ(worker.partitions(), 1);
  control::PlacedPartition older = of;
  older.placement = Placement(2);
  worker.OnMessage(control::Unassign{older}, 3, answers);
  EXPECT_THAT(worker.Hello().held, ElementsAre(of));
  EXPECT_TRUE(answers.empty());
  ASSERT_TRUE(worker.Progress().has_value());
  welcome(7);
  ASSERT_EQ(answers.size(), 1u);  // its newest bookmark, again
  EXPECT_TRUE(std::holds_alternative<control::Bookmark>(answers[0]));
  welcome(8);
  EXPECT_EQ(worker.partitions(), 0);
}

TEST(LightClient, ReportsAllPartitionsWhenWelcomeAndAnswersFences) {
  LightClient client(3, {});
  std::vector<control::ClientUp> answers;
  client.OnMessage(control::Welcome{.placements = {{PartitionId(1), Placement(1)},
                                                   {PartitionId(2), Placement(4)}}},
                   1, answers);
  ASSERT_EQ(answers.size(), 1u);
  const auto report = std::get<control::Report>(answers[0]);
  ASSERT_EQ(report.partitions.size(), 2u);
  EXPECT_TRUE(report.partitions[1].whole);
  EXPECT_EQ(report.partitions[1].placement, Placement(4));
  client.OnMessage(control::Fence{PartitionId(2), Placement(3)}, 2, answers);
  client.OnMessage(control::Fence{PartitionId(1), Placement(2)}, 3, answers);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(std::get<control::FenceAnswer>(answers[1]).report.placement, Placement(4));
  EXPECT_EQ(std::get<control::FenceAnswer>(answers[2]).report.placement, Placement(2));
}

TEST(LightClient, SaysThatItsReportIsCompleteWhenTheWelcomeIsPartial) {
  LightClient client(3, {});
  std::vector<control::ClientUp> answers;
  const auto report_after = [&](std::vector<control::Fence> placements, bool partial) {
    answers.clear();
    client.OnMessage(control::Welcome{.placements = std::move(placements), .partial = partial}, 1,
                     answers);
    return std::get<control::Report>(answers.at(0));
  };
  control::Report report = report_after({}, true);
  EXPECT_TRUE(report.complete);
  EXPECT_TRUE(report.partitions.empty());
  client.OnMessage(control::Membership{.version = 1,
                                       .partitions = {{PartitionId(7), Placement(4), WorkerId(1)},
                                                      {PartitionId(9), Placement(1), WorkerId()}}},
                   2, answers);
  EXPECT_EQ(client.NextReport().partitions.at(0).partition, PartitionId(7));
  report = report_after({{PartitionId(2), Placement(5)}}, true);
  EXPECT_TRUE(report.complete);
  ASSERT_EQ(report.partitions.size(), 2u);
  EXPECT_EQ(report.partitions[0].partition, PartitionId(2));
  EXPECT_EQ(report.partitions[0].placement, Placement(5));
  EXPECT_EQ(report.partitions[1].partition, PartitionId(7));
  EXPECT_FALSE(report.partitions[1].delivered.empty());
  report = report_after({}, true);
  EXPECT_EQ(report.partitions.size(), 1u) << "it has nothing of partition 2";
  EXPECT_FALSE(report_after({{PartitionId(7), Placement(6)}}, false).complete);
}

TEST(LightClient, NamesAllLinksOnAStreamAndThenWhatHasChanged) {
  LightClient client(3, {});
  std::vector<control::ClientUp> answers;
  const auto told = [&](uint64_t version, uint64_t second_worker) {
    control::Membership membership{.version = version};
    for (uint64_t partition = 1; partition <= 40; ++partition) {
      const WorkerId worker(partition % 2 == 1 ? 1 : second_worker);
      membership.partitions.push_back({PartitionId(partition), Placement(version), worker});
    }
    client.OnMessage(membership, version, answers);
  };
  const auto beat = [&] {
    const control::ClientHeartbeat beat = client.Beat();
    std::vector<uint64_t> named;
    for (const control::LinkCounts& link : beat.links) named.push_back(link.worker.value());
    return std::tuple(beat.only_changed_links, named, beat.gone_links);
  };
  using Named = std::vector<uint64_t>;
  using Gone = std::vector<WorkerId>;
  client.Hello();
  told(1, 2);
  EXPECT_EQ(beat(), std::tuple(false, Named{1, 2}, Gone{}));
  EXPECT_EQ(beat(), std::tuple(true, Named{}, Gone{}));
  client.NextReport();  // of four partitions
  EXPECT_EQ(beat(), std::tuple(true, Named{1, 2}, Gone{}));
  told(2, 3);
  EXPECT_EQ(beat(), std::tuple(true, Named{3}, Gone{WorkerId(2)}));
  client.Hello();
  EXPECT_EQ(beat(), std::tuple(false, Named{1, 3}, Gone{}));
}

class PeersOfADispatcher : public ::testing::Test {
 protected:
  void Start() {
    auto server = DispatchServer::Start({.port = port_,
                                         .work_dir = folder_,
                                         .fault_tolerant_mode = true,
                                         .heartbeat_interval = absl::Milliseconds(20)});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    port_ = server_->port();
  }
  std::unique_ptr<control::DispatcherStub> Stub() const {
    return control::DispatcherStub::Make(server_->target()).value();
  }
  control::JobAnswer MakeJob() {
    control::DatasetSummary summary{.fingerprint = 1,
                                    .cardinality = 1'000'000,
                                    .ends = true,
                                    .nodes = {{"Range#0", 1}},
                                    .plan = {{.node = "Range#0", .count = 1'000'000}}};
    const auto stub = Stub();
    EXPECT_TRUE(stub->GetOrRegisterDataset(
                        {.dataset_id = "fleet", .definition = "fleet", .summary = summary}, {})
                    .ok());
    return stub
        ->GetOrCreateJob(
            {.name = "fleet", .dataset_id = "fleet", .terms = {.mode = ShardingPolicy::kDynamic}},
            {})
        .value();
  }
  int port_ = 0;
  const std::string folder_ = ::testing::TempDir() + "/fleet_journal";
  std::unique_ptr<DispatchServer> server_;
};

TEST_F(PeersOfADispatcher, ComeBackWithTheirPartitionsAfterARestart) {
  std::filesystem::remove_all(folder_);
  Start();
  const control::JobAnswer job = MakeJob();
  const auto timers = Timers::Start().value();
  const auto doors = Doors::Start().value();
  Latencies worker_beats, client_beats;
  const PeerOptions<control::WorkerDown> of_workers{.heartbeat_timers = timers.get(),
                                                    .open_timers = timers.get(),
                                                    .heartbeats = &worker_beats,
                                                    .received = nullptr,
                                                    .between_progress = absl::Milliseconds(30)};
  const PeerOptions<control::ClientDown> of_clients{.heartbeat_timers = timers.get(),
                                                    .open_timers = timers.get(),
                                                    .heartbeats = &client_beats,
                                                    .received = nullptr,
                                                    .between_progress = absl::Milliseconds(30)};
  StreamedWorker worker(
      LightWorker(1, 4, doors->Open(1).value()), Stub(),
      [](auto& stub, auto* events) { return stub.OpenWorkerSession(events); }, of_workers,
      BootTime());
  const auto workers_term = [&] {
    return worker.Get([](const LightWorker& its) { return its.welcome() ? its.term() : 0; });
  };
  EXPECT_TRUE(Eventually([&] { return workers_term() == 1; }));
  StreamedClient client(
      LightClient(1, job), Stub(),
      [](auto& stub, auto* events) { return stub.OpenClientSession(events); }, of_clients,
      BootTime());
  const auto clients_term = [&] {
    return client.Get([](const LightClient& its) { return its.welcome() ? its.term() : 0; });
  };
  const auto placed = [&] {
    return worker.Get([](const LightWorker& its) { return its.partitions(); });
  };
  EXPECT_TRUE(Eventually([&] { return clients_term() == 1 && placed() == 4; }));
  const auto beat = [&] {
    return !std::isnan(QuantileMs(worker_beats.Take(), 0.5)) ||
           !std::isnan(QuantileMs(client_beats.Take(), 0.5));
  };
  EXPECT_TRUE(Eventually(beat));
  server_.reset();
  EXPECT_TRUE(Eventually([&] { return workers_term() == 0 && clients_term() == 0; }));
  Start();
  EXPECT_TRUE(Eventually([&] { return workers_term() == 2 && clients_term() == 2; }));
  EXPECT_EQ(placed(), 4);
  EXPECT_TRUE(client.Get([](const LightClient& its) { return its.refused(); }).ok());
}

}  // namespace
}  // namespace penstock::bench
