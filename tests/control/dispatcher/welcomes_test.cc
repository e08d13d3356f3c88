// SPDX-License-Identifier: Apache-2.0
// The partitions that a Welcome names, by the client's control version, and what follows from the
// client's first report.
#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/membership_fixture.h"

namespace penstock::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint32_t kEarlier = kFirstWithPartialWelcomes - 1;

Report ReportOf(const Welcome& welcome) {
  Report report;
  for (const Fence& placed : welcome.placements)
    report.partitions.push_back({.partition = placed.partition,
                                 .placement = placed.placement,
                                 .delivered = {},
                                 .received = {},
                                 .whole = true});
  return report;
}

// Six workers and five clients. With two links for each client, each worker has at least two
// clients.
class WelcomesTest : public MembershipTest {
 protected:
  static constexpr uint64_t kNumWorkers = 6;
  static constexpr uint64_t kNumClients = 5;

  static CoreOptions Options() {
    return {.client_timeout = absl::Hours(1), .worker_timeout = absl::Hours(1), .max_links = 2};
  }
  void SetUp() override {
    Start(Options());
    job_ = DynamicJob();
    for (uint64_t worker = 1; worker <= kNumWorkers; ++worker) workers_.push_back(Work(worker));
    for (uint64_t id = 1; id <= kNumClients; ++id) clients_.push_back({Come(job_, 0, id), {}});
    ReadAll();
    // Each partition is placed again, for some clients.
    for (uint64_t n = 1; n <= kNumWorkers; ++n) {
      Hello(workers_[n - 1], absl::StrCat("worker", n), {}, n);
      ReadAll();
    }
  }
  void ReadAll() {
    for (bool any = true; any;) {
      Pass(kSweepInterval, kSweepInterval);
      any = false;
      for (Client& client : clients_) any |= Read(client);
    }
  }
  void Restart() {
    Reopen(Options());
    clients_.clear();
  }
  // The workers come back with their partitions, all of which have ended.
  void RestartAtTheEnd() {
    Restart();
    for (uint64_t n = 1; n <= kNumWorkers; ++n) {
      workers_[n - 1].peer = nullptr;  // of the earlier core
      const std::vector<PlacedPartition> held = Held(n);
      Hello(workers_[n - 1], absl::StrCat("worker", n), held, n);
      for (const PlacedPartition& of : held) core_->OnMessage(workers_[n - 1].peer, Ended{of, 0});
    }
  }
  Reader Connect(uint64_t id, uint32_t version = VersionRange().max) {
    Reader reader;
    reader.peer = core_->OpenClient(reader.inbox);
    core_->OnMessage(reader.peer, ClientHello{.job = job_.job,
                                              .client = ClientId(id),
                                              .incarnation = Incarnation(1),
                                              .state = std::nullopt,
                                              .token = job_.token,
                                              .version = {VersionRange().min, version}});
    return reader;
  }
  // Returns the numbers of the partitions that may send to the client.
  std::vector<uint64_t> Serving(uint64_t id) const {
    const protocol::IterationRecord& record = recovered_.FindIteration(job_.job, 0)->record;
    const size_t reader = *record.FindReader(ClientId(id));
    std::vector<uint64_t> partitions;
    for (size_t p = 0; p < record.partitions.size(); ++p)
      if (record.partitions[p].MayServe(reader)) partitions.push_back(p + 1);
    return partitions;
  }
  template <class Message>
  static bool Got(const Reader& reader) {
    return std::ranges::any_of(reader.inbox->messages, [](const ClientDown& message) {
      return std::holds_alternative<Message>(message);
    });
  }
  static std::vector<uint64_t> NamedBy(const Welcome& welcome) {
    std::vector<uint64_t> named;
    for (const Fence& placed : welcome.placements) named.push_back(placed.partition.value());
    return named;
  }

  JobAnswer job_;
  std::vector<Worker> workers_;
  std::vector<Client> clients_;  // connected to the first dispatcher
};

TEST_F(WelcomesTest, NameAllPartitionsToAClientOfAnEarlierVersion) {
  Restart();
  for (uint64_t id = 1; id <= kNumClients; ++id) {
    const Welcome welcome = Connect(id, kEarlier).inbox->Take<Welcome>().value();
    EXPECT_EQ(welcome.version, kEarlier);
    EXPECT_FALSE(welcome.partial);
    EXPECT_THAT(NamedBy(welcome), ElementsAre(1, 2, 3, 4, 5, 6));
  }
}

TEST_F(WelcomesTest, NameThePartitionsThatServeAClient) {
  Restart();
  size_t named = 0;
  for (uint64_t id = 1; id <= kNumClients; ++id) {
    const Welcome welcome = Connect(id).inbox->Take<Welcome>().value();
    EXPECT_TRUE(welcome.partial);
    EXPECT_EQ(NamedBy(welcome), Serving(id));
    named += welcome.placements.size();
  }
  EXPECT_LT(named, kNumClients * kNumWorkers);
}

TEST_F(WelcomesTest, AreOfTheVersionOfEachClient) {
  Restart();
  EXPECT_TRUE(Connect(1).inbox->Take<Welcome>().value().partial);
  const Welcome earlier = Connect(2, kEarlier).inbox->Take<Welcome>().value();
  EXPECT_THAT(NamedBy(earlier), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_TRUE(Connect(3).inbox->Take<Welcome>().value().partial);
}

TEST_F(WelcomesTest, NameAllPartitionsOfAFixedOrder) {
  const JobAnswer ordered =
      Job("ordered", Register(2),
          {.mode = ShardingPolicy::kDynamic, .deterministic = true, .partitions = 3});
  Come(ordered, 0, 9);
  Restart();
  const Welcome welcome = Come(ordered, 0, 9).inbox->Take<Welcome>().value();
  EXPECT_FALSE(welcome.partial);
  EXPECT_THAT(NamedBy(welcome), ElementsAre(1, 2, 3));
  EXPECT_EQ(welcome.passed.size(), 3u);
}

TEST_F(WelcomesTest, AClientOfAnEarlierVersionNeedNotSayThatItsReportsAreComplete) {
  RestartAtTheEnd();
  std::vector<Reader> readers;
  for (uint64_t id = 1; id <= kNumClients; ++id) {
    readers.push_back(Connect(id, kEarlier));
    const Welcome welcome = readers.back().inbox->Take<Welcome>().value();
    core_->OnMessage(readers.back().peer, ReportOf(welcome));
  }
  for (const Reader& reader : readers) EXPECT_TRUE(reader.inbox->Take<End>().has_value());
}

TEST_F(WelcomesTest, TheIterationClosesOnceTheReportsOfAllClientsAreComplete) {
  RestartAtTheEnd();
  std::vector<Reader> readers;
  for (uint64_t id = 1; id <= kNumClients; ++id) {
    readers.push_back(Connect(id));
    const Welcome welcome = readers.back().inbox->Take<Welcome>().value();
    Report report = ReportOf(welcome);
    report.complete = id < kNumClients;
    if (id == kNumClients) {
      ASSERT_LT(welcome.placements.size(), kNumWorkers);
    }
    core_->OnMessage(readers.back().peer, std::move(report));
    EXPECT_FALSE(Got<End>(readers.back())) << id;
  }
  core_->OnMessage(readers.back().peer,
                   Report{.partitions = {}, .rounds = std::nullopt, .complete = true});
  for (const Reader& reader : readers) EXPECT_TRUE(Got<End>(reader));
}

// Elements may come before a message that names their partition, so the report of them has the
// lowest placement.
TEST_F(WelcomesTest, ANewClientIsServedWithoutAFence) {
  const Reader reader = Connect(9);
  const Welcome welcome = reader.inbox->Take<Welcome>().value();
  EXPECT_TRUE(welcome.partial);
  EXPECT_THAT(NamedBy(welcome), IsEmpty());
  core_->OnMessage(reader.peer, Report{.partitions = {}, .rounds = std::nullopt, .complete = true});
  const std::vector<uint64_t> serving = Serving(9);
  ASSERT_THAT(serving, Not(IsEmpty()));
  const protocol::IterationRecord& record = recovered_.FindIteration(job_.job, 0)->record;
  ASSERT_GT(record.partition(PartitionId(serving[0])).placement, Placement(1));
  core_->OnMessage(reader.peer, Report{{{.partition = PartitionId(serving[0]),
                                         .placement = Placement(1),
                                         .delivered = {},
                                         .received = IndexSet::Of(0, 1)}}});
  EXPECT_FALSE(Got<Fence>(reader));
}

}  // namespace
}  // namespace penstock::control
