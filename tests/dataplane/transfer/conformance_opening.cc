// SPDX-License-Identifier: Apache-2.0
// Dialling, and which clients are let in.
#include <thread>

#include "gmock/gmock.h"
#include "tests/dataplane/transfer/conformance.h"

namespace penstock::transfer {
namespace {

using ::testing::HasSubstr;

}  // namespace

TEST_P(TransportConformance, TellsTheWorkerTheClientsIdentity) {
  auto client = std::make_shared<ClientEnd>();
  DialOptions options = Options();
  IndexSet has = IndexSet::Of(0, 7);
  has.Add(9, 12);
  options.hello.holdings = {{PartitionId(2), Placement(3), has}};
  auto link = transport_.Dial(worker_.address(), options, client);
  ASSERT_TRUE(link.ok()) << link.status();
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  const Hello& hello = worker->link().hello();
  EXPECT_EQ(hello.token, "sesame");
  EXPECT_EQ(hello.client, ClientId(3));
  EXPECT_EQ(hello.incarnation, Incarnation(4));
  EXPECT_EQ(hello.iteration, IterationId(6));
  ASSERT_EQ(hello.holdings.size(), 1u);
  EXPECT_EQ(hello.holdings[0].partition, PartitionId(2));
  EXPECT_EQ(hello.holdings[0].placement, Placement(3));
  EXPECT_EQ(hello.holdings[0].indices, has);
  EXPECT_TRUE(client->AwaitOpen());
}

TEST_P(TransportConformance, RefusesAWrongTokenAndTellsTheClientWhy) {
  auto client = std::make_shared<ClientEnd>();
  DialOptions options = Options();
  options.hello.token = "open";
  auto link = transport_.Dial(worker_.address(), options, client);
  ASSERT_TRUE(link.ok()) << link.status();
  absl::Status reason = client->AwaitClosed();
  EXPECT_EQ(reason.code(), absl::StatusCode::kPermissionDenied) << reason;
  EXPECT_THAT(std::string(reason.message()), HasSubstr("wrong token for this job"));
}

TEST_P(TransportConformance, SaysThatNobodyListens) {
  const std::string address = worker_.address();
  worker_.Stop();
  auto client = std::make_shared<ClientEnd>();
  auto link = transport_.Dial(address, Options(), client);
  ASSERT_TRUE(link.ok()) << link.status();
  absl::Status reason = client->AwaitClosed();
  EXPECT_EQ(reason.code(), absl::StatusCode::kUnavailable) << reason;
  EXPECT_THAT(std::string(reason.message()), HasSubstr(address));
}

TEST_P(TransportConformance, ALinkDestroyedBeforeItOpensIsQuiet) {
  for (int i = 0; i < 20; ++i) {
    auto client = std::make_shared<ClientEnd>();
    auto link = transport_.Dial(worker_.address(), Options(), client);
    ASSERT_TRUE(link.ok()) << link.status();
    link->reset();
    client->DeclareOver();
    EXPECT_EQ(client->events_behind_end(), 0);
  }
}

TEST_P(TransportConformance, TwoIncarnationsOfAClientAreTwoLinks) {
  std::vector<std::shared_ptr<ClientEnd>> clients;
  std::vector<std::unique_ptr<ReceiveLink>> links;
  std::vector<std::shared_ptr<WorkerEnd>> workers;
  for (int i = 0; i < 2; ++i) {
    clients.push_back(std::make_shared<ClientEnd>());
    DialOptions options = Options();
    options.hello.incarnation = Incarnation(i);
    auto link = transport_.Dial(worker_.address(), options, clients[i]);
    ASSERT_TRUE(link.ok()) << link.status();
    links.push_back(*std::move(link));
    workers.push_back(worker_.Link(i));
    ASSERT_NE(workers[i], nullptr);
    EXPECT_EQ(workers[i]->link().hello().incarnation, Incarnation(i));
    links[i]->Grant({10});
    ASSERT_TRUE(workers[i]->AwaitGranted(10));
  }
  for (Index i = 0; i < 5; ++i) {
    ASSERT_TRUE(workers[0]->link().Send(Number(i)).ok());
    ASSERT_TRUE(workers[1]->link().Send(Number(100 + i)).ok());
  }
  workers[0]->link().Flush();
  ASSERT_TRUE(clients[0]->AwaitCount(5));
  links[0].reset();  // the old link closes, the new one does not notice
  EXPECT_TRUE(workers[0]->AwaitClosed().ok());
  for (Index i = 5; i < 10; ++i) ASSERT_TRUE(workers[1]->link().Send(Number(100 + i)).ok());
  workers[1]->link().Flush();
  ASSERT_TRUE(clients[1]->AwaitCount(10));
  EXPECT_EQ(clients[0]->indices(), UpTo(5));
  for (Index index : clients[1]->indices()) EXPECT_GE(index, 100);
  for (const Element& element : clients[1]->TakeElements()) {
    EXPECT_EQ(element.tensor(0).scalar<int64_t>(), element.identity().index);
  }
}

TEST_P(TransportConformance, ManyLinksToOneWorkerEachGetTheirOwn) {
  constexpr int kLinks = 24;
  constexpr Index kEach = 200;
  std::vector<std::shared_ptr<ClientEnd>> clients;
  std::vector<std::unique_ptr<ReceiveLink>> links;
  std::vector<std::shared_ptr<WorkerEnd>> workers;
  for (int i = 0; i < kLinks; ++i) {
    clients.push_back(std::make_shared<ClientEnd>());
    links.push_back(Open(clients[i], BlobSpec()));
    workers.push_back(worker_.Link(i));
    ASSERT_NE(workers[i], nullptr);
    links[i]->Grant({kEach});
    ASSERT_TRUE(workers[i]->AwaitGranted(kEach));
  }
  std::vector<std::thread> senders;
  for (int t = 0; t < 3; ++t) {
    senders.emplace_back([&, t] {
      for (Index i = 0; i < kEach; ++i) {
        for (int link = t; link < kLinks; link += 3) {
          EXPECT_TRUE(workers[link]->link().Send(Blob(link * kEach + i, 500 * link)).ok());
        }
      }
      for (int link = t; link < kLinks; link += 3) workers[link]->link().Flush();
    });
  }
  for (std::thread& sender : senders) sender.join();
  for (int link = 0; link < kLinks; ++link) {
    ASSERT_TRUE(clients[link]->AwaitCount(kEach)) << link;
    Index next = link * kEach;
    for (const Element& element : clients[link]->TakeElements()) {
      ASSERT_TRUE(IsBlob(element, next++, 500 * link));
    }
  }
}

TEST_P(TransportConformance, OneClientReadsFromManyWorkers) {
  constexpr int kWorkers = 8;
  constexpr Index kEach = 30;
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::unique_ptr<ReceiveLink>> links;
  auto client = std::make_shared<ClientEnd>();
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<Worker>(transport_));
    auto link = transport_.Dial(workers[i]->address(), Options(BlobSpec()), client);
    ASSERT_TRUE(link.ok()) << link.status();
    links.push_back(*std::move(link));
    links[i]->Grant({kEach});
  }
  for (int i = 0; i < kWorkers; ++i) {
    std::shared_ptr<WorkerEnd> end = workers[i]->Link(0);
    ASSERT_NE(end, nullptr);
    ASSERT_TRUE(end->AwaitGranted(kEach));
    for (Index n = 0; n < kEach; ++n) {
      ASSERT_TRUE(end->link().Send(Blob(i * kEach + n, 70'000)).ok());
    }
    end->link().Flush();
  }
  ASSERT_TRUE(client->AwaitCount(kWorkers * kEach));
  std::vector<int> times(kWorkers * kEach, 0);
  for (const Element& element : client->TakeElements()) {
    const Index index = element.identity().index;
    ++times.at(index);
    ASSERT_TRUE(IsBlob(element, index, 70'000));
  }
  EXPECT_EQ(times, std::vector<int>(kWorkers * kEach, 1));
}

}  // namespace penstock::transfer
