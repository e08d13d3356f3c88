// SPDX-License-Identifier: Apache-2.0
// How links end, and the events that the other side gets.
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <thread>

#include "gmock/gmock.h"
#include "tests/dataplane/transfer/conformance.h"

namespace penstock::transfer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

}  // namespace

TEST_P(TransportConformance, TheWorkersReasonReachesTheClientAfterSentElements) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({100});
  ASSERT_TRUE(worker->AwaitGranted(100));
  for (Index i = 0; i < 100; ++i) ASSERT_TRUE(worker->link().Send(Number(i)).ok());
  worker->link().Close(absl::AbortedError("the partition was moved"));
  absl::Status reason = client->AwaitClosed();
  EXPECT_EQ(reason.code(), absl::StatusCode::kAborted) << reason;
  EXPECT_THAT(std::string(reason.message()), HasSubstr("the partition was moved"));
  EXPECT_EQ(client->indices(), UpTo(100));
  EXPECT_EQ(worker->AwaitClosed(), absl::AbortedError("the partition was moved"));
  EXPECT_EQ(worker->link().Send(Number(100)).code(), absl::StatusCode::kUnavailable);
}

TEST_P(TransportConformance, AClientThatClosesIsNoError) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link.reset();
  client->DeclareOver();
  absl::Status reason = worker->AwaitClosed();
  EXPECT_TRUE(reason.ok()) << reason;
  EXPECT_EQ(worker->link().Send(Number(0)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(client->events_behind_end(), 0);
}

TEST_P(TransportConformance, AWorkerThatDestroysItsLinkClosesIt) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  worker->LetGo();
  EXPECT_EQ(client->AwaitClosed().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(worker->AwaitClosed().code(), absl::StatusCode::kCancelled);
}

TEST_P(TransportConformance, AWorkerThatStopsClosesItsLinks) {
  std::vector<std::shared_ptr<ClientEnd>> clients;
  std::vector<std::unique_ptr<ReceiveLink>> links;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(std::make_shared<ClientEnd>());
    links.push_back(Open(clients.back()));
  }
  std::vector<std::shared_ptr<WorkerEnd>> ends;
  for (int i = 0; i < 5; ++i) ends.push_back(worker_.Link(i));
  worker_.Stop();
  for (const std::shared_ptr<WorkerEnd>& end : ends) {
    EXPECT_EQ(end->AwaitClosed().code(), absl::StatusCode::kUnavailable);
  }
  for (const std::shared_ptr<ClientEnd>& client : clients) {
    EXPECT_EQ(client->AwaitClosed().code(), absl::StatusCode::kUnavailable);
  }
}

TEST_P(TransportConformance, TheLinkMayBeDestroyedInsideItsOwnEvent) {
  auto client = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link;
  client->on_element = [&](const Element& element) {
    if (element.identity().index == 2) link.reset();
  };
  link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({10});
  ASSERT_TRUE(worker->AwaitGranted(10));
  for (Index i = 0; i < 10; ++i) {
    if (!worker->link().Send(Number(i)).ok()) break;
    if (i == 2) worker->link().Flush();  // elements of one event are received together
  }
  worker->link().Flush();
  EXPECT_TRUE(worker->AwaitClosed().ok());
  ASSERT_TRUE(client->AwaitCount(3));
  EXPECT_THAT(client->indices(), ElementsAre(0, 1, 2));
  EXPECT_FALSE(client->closed());
}

TEST_P(TransportConformance, UnconfirmedElementsComeBackToTheSender) {
  int links = 0;
  for (Index stop_at : {0, 1, 7, 50, 400}) {
    auto client = std::make_shared<ClientEnd>();
    // Not in this scope: the event still goes on with the elements that came together.
    auto link = std::make_shared<std::unique_ptr<ReceiveLink>>();
    client->on_element = [link, stop_at](const Element& element) {
      if (element.identity().index == stop_at) link->reset();
    };
    *link = Open(client);
    std::shared_ptr<WorkerEnd> worker = worker_.Link(links++);
    ASSERT_NE(worker, nullptr);
    (*link)->Grant({1000});
    ASSERT_TRUE(worker->AwaitGranted(1000));
    Index sent = 0;
    while (sent < 1000 && worker->link().Send(Number(sent)).ok()) ++sent;
    worker->link().Flush();
    EXPECT_TRUE(worker->AwaitClosed().ok());
    ASSERT_TRUE(client->AwaitCount(stop_at + 1));
    // Elements of the same event may have been received too.
    const std::vector<Index> indices = client->indices();
    EXPECT_EQ(indices, UpTo(indices.size()));
    // Each element is reported as received or comes back, in order; none is missing.
    const int64_t received = worker->received();
    EXPECT_LE(received, indices.size());
    std::vector<Index> back(sent - received);
    std::iota(back.begin(), back.end(), received);
    EXPECT_EQ(worker->unconfirmed(), back);
  }
}

TEST_P(TransportConformance, UsingACreditConfirmsEarlierReceipts) {
  auto client = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link;
  client->on_element = [&](const Element& element) {  // element 10; all others have returned
    if (element.identity().index == 10) link->Grant({1});
  };
  link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({11});
  ASSERT_TRUE(worker->AwaitGranted(11));
  for (Index i = 0; i < 10; ++i) ASSERT_TRUE(worker->link().Send(Number(i)).ok());
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(10));
  ASSERT_TRUE(worker->link().Send(Number(10)).ok());
  worker->link().Flush();
  ASSERT_TRUE(worker->AwaitGranted(12));
  ASSERT_TRUE(worker->link().Send(Number(11)).ok());
  worker->link().Close(absl::UnavailableError("broken on purpose"));
  worker->AwaitClosed().IgnoreError();
  for (Index index : worker->unconfirmed()) EXPECT_GE(index, 10);
}

TEST_P(TransportConformance, ManyThreadsMaySendOnOneLink) {
  constexpr int kThreads = 4;
  constexpr Index kEach = 1000;
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({kThreads * kEach});
  ASSERT_TRUE(worker->AwaitGranted(kThreads * kEach));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (Index i = 0; i < kEach; ++i) {
        EXPECT_TRUE(worker->link().Send(Number(t * kEach + i)).ok());
      }
      worker->link().Flush();
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(client->AwaitCount(kThreads * kEach));
  std::vector<Index> last(kThreads, -1);  // each thread's own elements stay in order
  for (Index index : client->indices()) {
    EXPECT_GT(index, last[index / kEach]);
    last[index / kEach] = index;
  }
  EXPECT_TRUE(worker->AwaitReceived(kThreads * kEach));
}

TEST_P(TransportConformance, ALinkDestroyedDuringALargeElementLeavesNothing) {
  for (int i = 0; i < 3; ++i) {
    auto client = std::make_shared<ClientEnd>();
    auto link = Open(client, BlobSpec());
    std::shared_ptr<WorkerEnd> worker = worker_.Link(i);
    ASSERT_NE(worker, nullptr);
    link->Grant({2});
    ASSERT_TRUE(worker->AwaitGranted(2));
    ASSERT_TRUE(worker->link().Send(Blob(0, 8 << 20)).ok());
    ASSERT_TRUE(worker->link().Send(Blob(1, 8 << 20)).ok());
    link.reset();
    client->DeclareOver();
    EXPECT_TRUE(worker->AwaitClosed().ok());
    const int64_t received = worker->received();
    EXPECT_LE(received, static_cast<int64_t>(client->indices().size()));
    std::vector<Index> back(2 - received);
    std::iota(back.begin(), back.end(), received);
    EXPECT_EQ(worker->unconfirmed(), back);
    EXPECT_EQ(client->events_behind_end(), 0);
    worker->ForgetUnconfirmed();
    client->TakeElements();
  }
  worker_.Stop();
  EXPECT_TRUE(Eventually([this] { return sender_pool_->counters().bytes_lent == 0; }));
  EXPECT_TRUE(Eventually([this] { return receiver_pool_->counters().bytes_lent == 0; }));
}

TEST_P(TransportConformance, AForkedTrainerLeavesItsParentsElementsAlone) {
  constexpr int64_t kBytes = 100'000;
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client, BlobSpec());
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({8});
  ASSERT_TRUE(worker->AwaitGranted(8));
  for (Index i = 0; i < 4; ++i) ASSERT_TRUE(worker->link().Send(Blob(i, kBytes)).ok());
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(4));
  ASSERT_TRUE(worker->AwaitReceived(4));
  std::vector<Element> elements = client->TakeElements();
  const pid_t child = ::fork();
  if (child == 0) {
    elements.clear();  // void here: does nothing
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (Index i = 4; i < 8; ++i) ASSERT_TRUE(worker->link().Send(Blob(i, kBytes)).ok());
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(8));
  for (Element& element : client->TakeElements()) elements.push_back(std::move(element));
  for (Index i = 0; i < 8; ++i) EXPECT_TRUE(IsBlob(elements[i], i, kBytes)) << i;
  EXPECT_FALSE(client->closed());
}

}  // namespace penstock::transfer
