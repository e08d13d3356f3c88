// SPDX-License-Identifier: Apache-2.0
// Credits, and the limits they set.
#include <atomic>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "tests/dataplane/transfer/conformance.h"

namespace penstock::transfer {
namespace {

using ::testing::ElementsAre;

}  // namespace

TEST_P(TransportConformance, NothingIsSentWithoutACredit) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  Sent number = Number(0);
  EXPECT_EQ(worker->link().Send(std::move(number)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(worker->link().Send({IdentityOf(0), absl::DataLossError("")}).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(number.element);  // still the sender's
  link->Grant({1});
  ASSERT_TRUE(worker->AwaitGranted(1));
  EXPECT_EQ(worker->link().credits(), 1);
  EXPECT_TRUE(worker->link().Send(std::move(number)).ok());
  EXPECT_EQ(worker->link().credits(), 0);
  EXPECT_EQ(worker->link().Send(Number(1)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(client->AwaitCount(1));
}

TEST_P(TransportConformance, CreditsGrantedBeforeTheLinkOpensCount) {
  auto client = std::make_shared<ClientEnd>();
  auto link = transport_.Dial(worker_.address(), Options(), client);
  ASSERT_TRUE(link.ok()) << link.status();
  (*link)->Grant({2});
  (*link)->Grant({3});
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  ASSERT_TRUE(worker->AwaitGranted(5));
  EXPECT_EQ(worker->link().credits(), 5);
}

TEST_P(TransportConformance, UnusedCreditsCanBeRecalled) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({5});
  ASSERT_TRUE(worker->AwaitGranted(5));
  ASSERT_TRUE(worker->link().Send(Number(0)).ok());
  ASSERT_TRUE(worker->link().Send(Number(1)).ok());
  link->Recall();
  ASSERT_TRUE(client->AwaitRecalled(1));
  EXPECT_THAT(client->recalled(), ElementsAre(3));
  EXPECT_THAT(client->indices(), ElementsAre(0, 1));  // sent before the recall, so received before
  EXPECT_EQ(worker->link().credits(), 0);
  EXPECT_EQ(worker->link().Send(Number(2)).code(), absl::StatusCode::kFailedPrecondition);
  link->Recall();
  link->Grant({1});  // after the recall: stays
  ASSERT_TRUE(client->AwaitRecalled(2));
  EXPECT_THAT(client->recalled(), ElementsAre(3, 0));
  ASSERT_TRUE(worker->AwaitGranted(6));
  EXPECT_EQ(worker->link().credits(), 1);
}

TEST_P(TransportConformance, AnEventMaySendAndGrant) {
  constexpr Index kCount = 2000;
  auto client = std::make_shared<ClientEnd>();
  Index sent = 0;  // used by events, which come one at a time
  worker_.on_accept = [&](WorkerEnd& end) {
    end.on_credits = [&](SendLink& link, Credits granted) {
      for (int64_t i = 0; i < granted.count && sent < kCount; ++i) {
        ASSERT_TRUE(link.Send(Number(sent++)).ok());
      }
      link.Flush();
    };
  };
  ReceiveLink* grant_to = nullptr;
  client->on_element = [&](const Element&) { grant_to->Grant({1}); };
  auto link = Open(client);
  grant_to = link.get();
  link->Grant({2});
  ASSERT_TRUE(client->AwaitCount(kCount));
  EXPECT_EQ(client->indices(), UpTo(kCount));
  link.reset();
  worker_.Stop();  // credits may still be on their way, and the event uses `sent`
}

TEST_P(TransportConformance, TheSendersSlotsComeBackWhenElementsAreReceived) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client, BlobSpec());
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({20});
  ASSERT_TRUE(worker->AwaitGranted(20));
  for (Index i = 0; i < 20; ++i) ASSERT_TRUE(worker->link().Send(Blob(i, 100'000)).ok());
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(20));
  ASSERT_TRUE(worker->AwaitReceived(20));
  client->TakeElements();
  link.reset();
  EXPECT_TRUE(worker->AwaitClosed().ok());
  worker_.Stop();
  EXPECT_TRUE(Eventually([this] { return sender_pool_->counters().bytes_lent == 0; }));
  EXPECT_TRUE(Eventually([this] { return receiver_pool_->counters().bytes_lent == 0; }));
}

TEST_P(TransportConformance, AnElementOutlivesItsLink) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({1});
  ASSERT_TRUE(worker->AwaitGranted(1));
  ASSERT_TRUE(worker->link().Send(Number(41)).ok());
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(1));
  std::vector<Element> elements = client->TakeElements();
  link.reset();
  worker_.Stop();
  EXPECT_EQ(elements[0].tensor(0).scalar<int64_t>(), 41);
}

TEST_P(TransportConformance, ASlowReaderHoldsNoMoreThanItAskedFor) {
  constexpr int64_t kWindow = 4;
  constexpr int64_t kBytes = 300'000;
  constexpr Index kCount = 60;
  auto client = std::make_shared<ClientEnd>();
  Index sent = 0;
  worker_.on_accept = [&](WorkerEnd& end) {
    end.on_credits = [&](SendLink& link, Credits granted) {
      for (int64_t i = 0; i < granted.count && sent < kCount; ++i) {
        ASSERT_TRUE(link.Send(Blob(sent++, kBytes)).ok());
      }
      link.Flush();
    };
  };
  auto link = Open(client, BlobSpec());
  link->Grant({kWindow});
  Index taken = 0;
  while (taken < kCount) {
    ASSERT_TRUE(client->AwaitCount(taken + 1));
    ASSERT_LE(static_cast<Index>(client->indices().size()), taken + kWindow);
    // A slot is at most half as large again as its element.
    ASSERT_LE(receiver_pool_->counters().bytes_lent, kWindow * kBytes * 3 / 2);
    for (const Element& element : client->TakeElements()) {
      ASSERT_TRUE(IsBlob(element, taken++, kBytes));
      link->Grant({1});  // one more for each element that is released
    }
  }
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link.reset();
  EXPECT_TRUE(worker->AwaitClosed().ok());
  worker_.Stop();
  EXPECT_TRUE(Eventually([this] { return receiver_pool_->counters().bytes_lent == 0; }));
  EXPECT_TRUE(Eventually([this] { return sender_pool_->counters().bytes_lent == 0; }));
}

TEST_P(TransportConformance, GrantsAndRecallsFromManyThreadsAddUp) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 200;
  auto client = std::make_shared<ClientEnd>();
  std::atomic<Index> sent{0};
  worker_.on_accept = [&](WorkerEnd& end) {
    end.on_credits = [&](SendLink& link, Credits granted) {
      // Uses one in two; recalls may take it away.
      for (int64_t i = 0; i < granted.count; i += 2) {
        if (link.Send(Number(sent)).ok()) ++sent;
      }
      link.Flush();
    };
  };
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  std::atomic<int64_t> granted{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < kRounds; ++i) {
        const int64_t count = 1 + static_cast<int64_t>(random() % 5);
        granted += count;
        link->Grant({count});
        if (random() % 3 == 0) link->Recall();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(worker->AwaitGranted(granted));
  link->Recall();
  ASSERT_TRUE(client->AwaitSettled(granted));
  EXPECT_EQ(client->indices(), UpTo(sent));
  EXPECT_EQ(worker->link().credits(), 0);
  link.reset();
  worker_.Stop();
}

}  // namespace penstock::transfer
