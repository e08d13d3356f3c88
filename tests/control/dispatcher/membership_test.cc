// SPDX-License-Identifier: Apache-2.0
// When readers get the list of workers and partitions, and which part of it.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/dispatcher/membership_sender.h"
#include "control/dispatcher/messages/peer_messages.h"
#include "control/stub/membership_view.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/membership_fixture.h"

namespace penstock::control {
namespace {

constexpr absl::Duration kGatherTime = MembershipSender::kGatherTime;

// --- When ---------------------------------------------------------------------------

// When each worker's hello sent the whole list to each reader, a large fleet took hours to come
// back.
TEST_F(MembershipTest, IsSentOnlyForAHelloThatChangesSomething) {
  Start();
  const JobAnswer job = DynamicJob();
  Worker worker;
  Hello(worker, "here");
  Reader reader = Come(job, 0, 1);
  const auto assign = worker.inbox->Take<Assign>();
  ASSERT_TRUE(assign.has_value());
  Drop(reader);
  Hello(worker, "here", {assign->of});
  EXPECT_FALSE(reader.inbox->Take<Membership>().has_value());
  Hello(worker, "elsewhere", {assign->of});
  const auto membership = reader.inbox->Take<Membership>();
  ASSERT_TRUE(membership.has_value());
  ASSERT_EQ(membership->workers.size(), 1u);
  EXPECT_EQ(membership->workers[0].address, "elsewhere");
  EXPECT_EQ(membership->partitions.size(), 1u);
}

TEST_F(MembershipTest, IsNotSentForTheHellosAfterARestart) {
  Start();
  const JobAnswer job = DynamicJob();
  Worker first, second;
  Hello(first, "first", {}, 1);
  Hello(second, "second", {}, 2);
  Come(job, 0, 1);
  ASSERT_EQ(Held(1).size(), 1u);
  ASSERT_EQ(Held(2).size(), 1u);
  Reopen();
  Reader reader = Come(job, 0, 1);
  const auto whole = reader.inbox->Take<Membership>();
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->since, 0u);
  EXPECT_EQ(whole->workers.size(), 2u);
  first.peer = second.peer = nullptr;  // of the earlier core
  Hello(first, "first", Held(1), 1);
  Hello(second, "second", Held(2), 2);
  Pass(2 * kSweepInterval, kSweepInterval);
  EXPECT_FALSE(reader.inbox->Take<Membership>().has_value());
}

// A message costs gRPC far more than its bytes do.
TEST_F(MembershipTest, IsSentTogetherWithTheWelcome) {
  Start();
  const JobAnswer job = DynamicJob();
  Work(1);
  Reader reader = Come(job, 0, 1);
  EXPECT_EQ(reader.inbox->batches, std::vector<size_t>{2});
  EXPECT_TRUE(reader.inbox->Take<Welcome>().has_value());
  EXPECT_TRUE(reader.inbox->Take<Membership>().has_value());
}

TEST_F(MembershipTest, ChangesInABurstAreGathered) {
  Start();
  const JobAnswer job = DynamicJob();
  Work(1);
  Reader reader = Come(job, 0, 1);
  const auto whole = reader.inbox->Take<Membership>();
  ASSERT_TRUE(whole.has_value());
  Work(2);
  const auto isolated = reader.inbox->Take<Membership>();
  ASSERT_TRUE(isolated.has_value()) << "an isolated change is not delayed";
  EXPECT_EQ(isolated->since, whole->version);
  EXPECT_EQ(isolated->partitions.size(), 1u);

  Work(3);
  Work(4);
  now_ += kGatherTime - absl::Milliseconds(1);
  core_->Sweep();
  EXPECT_FALSE(reader.inbox->Take<Membership>().has_value());
  now_ += absl::Milliseconds(1);
  core_->Sweep();
  const auto gathered = reader.inbox->Take<Membership>();
  ASSERT_TRUE(gathered.has_value());
  EXPECT_EQ(gathered->since, isolated->version);
  EXPECT_EQ(gathered->partitions.size(), 2u);
  EXPECT_EQ(gathered->workers.size(), 2u);
  EXPECT_FALSE(reader.inbox->Take<Membership>().has_value());

  Work(5);
  now_ += kGatherTime;
  Register(2);  // any event will do
  EXPECT_TRUE(reader.inbox->Take<Membership>().has_value());
}

TEST_F(MembershipTest, ManyNewPartitionsAreNotGathered) {
  Start();
  const JobAnswer job = DynamicJob();
  Work(1);
  Reader reader = Come(job, 0, 1);
  Work(2);
  Drop(reader);
  Worker large;
  Hello(large, "large", {}, 3, /*permits=*/600);
  const auto change = reader.inbox->Take<Membership>();
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->partitions.size(), 600u);
}

// --- Which part ---------------------------------------------------------------------

TEST_F(MembershipTest, AReaderThatJoinsDuringABurstGetsTheRestOfIt) {
  Start();
  const JobAnswer job = DynamicJob();
  Work(1);
  Client first{Come(job, 0, 1), {}};
  Read(first);
  Work(2);
  Work(3);  // waits
  Client second{Come(job, 0, 2), {}};
  Read(first);
  Read(second);
  EXPECT_EQ(first.view.Whole().partitions.size(), 2u);
  EXPECT_EQ(second.view.Whole().partitions.size(), 3u);
  Work(4);  // waits too
  now_ += kGatherTime;
  core_->Sweep();
  Read(first);
  Read(second);
  EXPECT_EQ(first.view.Whole().partitions.size(), 4u);
  EXPECT_EQ(second.view.Whole(), first.view.Whole());
}

TEST_F(MembershipTest, AReaderThatReconnectsGetsTheWhole) {
  Start();
  const JobAnswer job = DynamicJob();
  Work(1);
  Reader reader = Come(job, 0, 1);
  Work(2);
  Drop(reader);
  core_->OnClosed(reader.peer);
  Work(3);
  reader = Come(job, 0, 1);
  const auto whole = reader.inbox->Take<Membership>();
  ASSERT_TRUE(whole.has_value());
  EXPECT_EQ(whole->since, 0u);
  EXPECT_EQ(whole->partitions.size(), 3u);
  EXPECT_EQ(whole->workers.size(), 3u);
}

TEST_F(MembershipTest, TheEndOfAPartitionIsSentWithoutTheOthers) {
  Start();
  const JobAnswer job =
      Job("job", Register(1),
          {.mode = ShardingPolicy::kDynamic, .deterministic = true, .partitions = 2});
  Worker worker = Work(1);
  Client client{Come(job, 0, 1), {}};
  Read(client);
  const auto assign = worker.inbox->Take<Assign>();
  ASSERT_TRUE(assign.has_value());
  core_->OnMessage(worker.peer, Ended{assign->of, 5});
  std::vector<Membership> changes;
  for (const ClientDown& message : client.reader.inbox->messages) {
    if (const auto* change = std::get_if<Membership>(&message)) changes.push_back(*change);
  }
  ASSERT_EQ(changes.size(), 1u);
  ASSERT_EQ(changes[0].partitions.size(), 1u);
  EXPECT_EQ(changes[0].partitions[0].end, 5);
  Read(client);
  core_->OnClosed(client.reader.peer);
  Client again{Come(job, 0, 1), {}};
  Read(again);
  EXPECT_EQ(again.view.Whole(), client.view.Whole());
}

// With six workers and two links for each reader, each worker has at least two readers.
class AudienceMembershipTest : public MembershipTest {
 protected:
  void SetUp() override {
    Start({.max_links = 2});
    job_ = DynamicJob();
    for (uint64_t worker = 1; worker <= 6; ++worker) workers_.push_back(Work(worker));
  }
  const protocol::IterationRecord& record() const {
    return recovered_.FindIteration(job_.job, 0)->record;
  }
  Client Join(uint64_t id) {
    Client client{Come(job_, 0, id), {}};
    Read(client);
    return client;
  }
  // Returns the partitions for which the client has a worker.
  static std::vector<uint64_t> PartitionsOf(const Client& client) {
    std::vector<uint64_t> partitions;
    for (const Membership::Partition& its : client.view.Whole().partitions)
      if (its.worker) partitions.push_back(its.partition.value());
    return partitions;
  }
  // Returns the partitions that serve the reader at this position.
  std::vector<uint64_t> Serving(size_t reader) const {
    std::vector<uint64_t> partitions;
    for (size_t p = 0; p < record().partitions.size(); ++p)
      if (record().partitions[p].MayServe(reader)) partitions.push_back(p + 1);
    return partitions;
  }

  JobAnswer job_;
  std::vector<Worker> workers_;
};

TEST_F(AudienceMembershipTest, NamesOnlyThePartitionsThatServeTheReader) {
  std::vector<Client> clients;
  for (uint64_t id = 1; id <= 5; ++id) clients.push_back(Join(id));
  Pass(2 * kSweepInterval, kSweepInterval);
  for (Client& client : clients) Read(client);
  size_t links = 0;
  for (size_t reader = 0; reader < clients.size(); ++reader) {
    EXPECT_EQ(PartitionsOf(clients[reader]), Serving(reader));
    EXPECT_EQ(clients[reader].view.Whole().num_partitions, 6u);
    EXPECT_EQ(clients[reader].view.Whole().workers.size(), Serving(reader).size());
    EXPECT_GE(Serving(reader).size(), 1u);
    links += Serving(reader).size();
  }
  EXPECT_LT(links, 5u * 6u);
}

TEST_F(AudienceMembershipTest, AChangeGoesToTheReadersThatItConcerns) {
  std::vector<Client> clients;
  for (uint64_t id = 1; id <= 8; ++id) clients.push_back(Join(id));
  Pass(2 * kSweepInterval, kSweepInterval);
  for (Client& client : clients) Read(client);
  const size_t partition = [&] {
    for (size_t p = 0;; ++p)
      if (record().partitions[p].audience->size() < 8) return p;
  }();
  const WorkerId worker = record().partitions[partition].worker;
  const IndexSet before = *record().partitions[partition].audience;
  Hello(workers_[worker.value() - 1], absl::StrCat("worker", worker.value()), {}, worker.value());
  for (int i = 0; i < 3; ++i) {
    Pass(2 * kSweepInterval, kSweepInterval);
    for (size_t reader = 0; reader < clients.size(); ++reader) {
      for (const ClientDown& message : clients[reader].reader.inbox->messages) {
        const auto* change = std::get_if<Membership>(&message);
        if (change == nullptr) continue;
        EXPECT_TRUE(before.Contains(static_cast<Index>(reader)) ||
                    record().partitions[partition].MayServe(reader))
            << "reader " << reader << " need not know";
      }
      Read(clients[reader]);
    }
  }
  for (size_t reader = 0; reader < clients.size(); ++reader)
    EXPECT_EQ(PartitionsOf(clients[reader]), Serving(reader));
}

// The Welcome names the placements, so the first report answers for each of them.
TEST_F(AudienceMembershipTest, NoReaderIsAskedOnceMoreAfterARestart) {
  for (uint64_t id = 1; id <= 5; ++id) Join(id);
  const protocol::IterationRecord before = record();
  Reopen({.max_links = 2});
  for (uint64_t id = 1; id <= 5; ++id) {
    Reader reader = Come(job_, 0, id);
    const auto welcome = reader.inbox->Take<Welcome>();
    ASSERT_TRUE(welcome.has_value());
    for (const ClientDown& message : reader.inbox->messages)
      EXPECT_FALSE(std::holds_alternative<Fence>(message)) << "client " << id;
    Report report{.partitions = {}, .rounds = std::nullopt, .complete = welcome->partial};
    for (const Fence& placed : welcome->placements)
      report.partitions.push_back(
          {.partition = placed.partition, .placement = placed.placement, .whole = true});
    core_->OnMessage(reader.peer, std::move(report));
    for (const ClientDown& message : reader.inbox->messages)
      EXPECT_FALSE(std::holds_alternative<Fence>(message)) << "client " << id;
  }
  EXPECT_EQ(record(), before);
}

TEST_F(AudienceMembershipTest, ANewAddressOfAWorkerGoesToItsReaders) {
  std::vector<Client> clients;
  for (uint64_t id = 1; id <= 8; ++id) clients.push_back(Join(id));
  for (uint64_t worker = 1; worker <= 6; ++worker) {
    Hello(workers_[worker - 1], absl::StrCat("worker", worker), {}, worker);
    Pass(2 * kSweepInterval, kSweepInterval);
    for (Client& client : clients) Read(client);
  }
  Pass(2 * kSweepInterval, kSweepInterval);
  for (Client& client : clients) Read(client);
  ASSERT_LT(record().partitions[0].audience->size(), 8);
  const WorkerId moved = record().partitions[0].worker;
  Hello(workers_[moved.value() - 1], "elsewhere", Held(moved.value()), moved.value());
  for (size_t reader = 0; reader < clients.size(); ++reader) {
    const bool is_served = record().partitions[0].MayServe(reader);
    EXPECT_EQ(Read(clients[reader]), is_served) << reader;
    const auto* known = clients[reader].view.Find(moved);
    ASSERT_EQ(known != nullptr, is_served);
    EXPECT_EQ(is_served ? known->address : "", is_served ? "elsewhere" : "");
  }
}

class RandomMembershipTest : public MembershipTest {
 protected:
  void Run(uint32_t seed, int64_t max_links) {
    random_draws_.seed(seed);
    workers_.clear();
    clients_.clear();
    gone_.clear();
    Start({.client_timeout = absl::Hours(1),
           .worker_timeout = absl::Hours(1),
           .max_links = max_links});
    job_ = DynamicJob({.max_bytes_in_flight = 1000});
    for (int step = 1; step <= 200 && !HasFailure(); ++step) {
      Step();
      ReadAll();
      if (step % 20 == 0) Compare();
    }
  }

 private:
  uint64_t Draw(uint64_t bound) { return random_draws_() % bound; }

  void Step() {
    const uint64_t worker = 1 + Draw(6);
    const uint64_t client = 1 + Draw(4);
    const std::string address = Draw(2) == 0 ? "here" : "there";
    switch (Draw(8)) {
      case 0:  // joins, or restarts and has lost its partitions
        Hello(workers_[worker], address, {}, worker, static_cast<int32_t>(1 + Draw(3)));
        break;
      case 1:
        if (workers_.contains(worker))
          Hello(workers_[worker], address, Held(worker), worker, static_cast<int32_t>(1 + Draw(3)));
        break;
      case 2:
        if (!workers_.contains(worker)) break;
        core_->OnMessage(workers_[worker].peer, WorkerLeave{});
        core_->OnClosed(workers_[worker].peer);
        workers_.erase(worker);
        break;
      case 3:  // joins, or reconnects
        if (clients_.contains(client)) core_->OnClosed(clients_[client].reader.peer);
        clients_[client].reader = Come(job_, 0, client + 10 * gone_[client]);
        break;
      case 4:
        if (!clients_.contains(client) || clients_.size() == 1) break;
        Go(clients_[client].reader);
        clients_.erase(client);
        ++gone_[client];  // nobody uses its id again
        break;
      case 5:
        core_->Sweep();
        break;
      default:
        now_ += absl::Milliseconds(20);
    }
  }
  bool ReadAll() {
    bool any = false;
    for (auto& [id, client] : clients_) any |= Read(client);
    return any;
  }
  void Compare() {
    do {
      Pass(kSweepInterval, kSweepInterval);
    } while (ReadAll());
    const IterationState* iteration = recovered_.FindIteration(job_.job, 0);
    for (auto& [id, client] : clients_) {
      ASSERT_NE(iteration, nullptr);
      const protocol::IterationRecord& record = iteration->record;
      const auto reader = record.FindReader(client.reader.peer->client);
      ASSERT_TRUE(reader.has_value());
      Membership view = client.view.Whole();
      std::erase_if(view.partitions, [&](const Membership::Partition& its) {
        return !record.partition(its.partition).MayServe(*reader);
      });
      EXPECT_EQ(view, MembershipOf(recovered_, *iteration, nullptr, view.version, reader));
      const bool any =
          std::ranges::any_of(record.partitions, [](const auto& its) { return !its.collecting(); });
      EXPECT_EQ(view.workers.empty(), !any) << "each reader reads some worker";
    }
  }

  std::mt19937 random_draws_;
  JobAnswer job_;
  std::map<uint64_t, Worker> workers_;  // connected
  std::map<uint64_t, Client> clients_;  // connected
  std::map<uint64_t, uint64_t> gone_;   // how many of these have left
};

TEST_F(RandomMembershipTest, TheMessagesAddUpToTheWhole) {
  for (uint32_t seed = 1; seed <= 30 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Run(seed, /*max_links=*/0);
  }
}

TEST_F(RandomMembershipTest, TheMessagesAddUpToTheReadersPart) {
  for (uint32_t seed = 1; seed <= 30 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Run(seed, /*max_links=*/2);
  }
}

}  // namespace
}  // namespace penstock::control
