// SPDX-License-Identifier: Apache-2.0
#include "tests/dataplane/transfer/conformance.h"

#include <numeric>
#include <thread>

#include "gmock/gmock.h"

namespace penstock::transfer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Identity IdentityOf(Index index) {
  return {.job = JobId(5),
          .iteration = IterationId(6),
          .partition = PartitionId(1),
          .placement = Placement(1),
          .index = index};
}

std::vector<Index> UpTo(Index count) {
  std::vector<Index> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

Spec BlobSpec() {
  return Dense(kUInt8, {kUnknownDim});
}

}  // namespace

TransportConformance::TransportConformance()
    : transport_(**FindTransport(GetParam())), worker_(transport_) {
  EXPECT_TRUE(worker_.listening());
}

DialOptions TransportConformance::Options(Spec spec) const {
  DialOptions options;
  options.hello = {.token = "sesame",
                   .client = ClientId(3),
                   .incarnation = Incarnation(4),
                   .iteration = IterationId(6)};
  options.spec = std::move(spec);
  options.pool = receiver_pool_.get();
  options.timeout = absl::Minutes(1);
  return options;
}

std::unique_ptr<ReceiveLink> TransportConformance::Open(const std::shared_ptr<ClientEnd>& client,
                                                        Spec spec) {
  absl::StatusOr<std::unique_ptr<ReceiveLink>> link =
      transport_.Dial(worker_.address(), Options(std::move(spec)), client);
  EXPECT_TRUE(link.ok()) << link.status();
  EXPECT_TRUE(client->AwaitOpen());
  return link.ok() ? *std::move(link) : nullptr;
}

Element TransportConformance::Number(Index index) {
  const int64_t value = index;
  Element element = *MakeElement(*sender_pool_, {Tensor(kInt64, {}, &value)}, Spec(Scalar(kInt64)));
  element.set_identity(IdentityOf(index));
  return element;
}

Element TransportConformance::Blob(Index index, int64_t bytes) {
  std::vector<uint8_t> values(bytes);
  for (int64_t i = 0; i < bytes; ++i) values[i] = static_cast<uint8_t>(i * 7 + index);
  const int64_t dims[] = {bytes};
  Element element =
      *MakeElement(*sender_pool_, {Tensor(kUInt8, dims, values.data())}, Spec(BlobSpec()));
  element.set_identity(IdentityOf(index));
  return element;
}

// --- Opening -------------------------------------------------------------------

TEST_P(TransportConformance, TellsTheWorkerWhoDials) {
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

TEST_P(TransportConformance, ALinkLetGoOfBeforeItOpensIsQuiet) {
  for (int i = 0; i < 20; ++i) {
    auto client = std::make_shared<ClientEnd>();
    auto link = transport_.Dial(worker_.address(), Options(), client);
    ASSERT_TRUE(link.ok()) << link.status();
    link->reset();
    client->DeclareOver();
    EXPECT_EQ(client->events_behind_end(), 0);
  }
}

// --- Elements ------------------------------------------------------------------

TEST_P(TransportConformance, ElementsLandInTheOrderTheyWereSent) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  constexpr Index kCount = 5000;
  link->Grant({kCount});
  ASSERT_TRUE(worker->AwaitGranted(kCount));
  for (Index i = 0; i < kCount; ++i) ASSERT_TRUE(worker->link().Send(Number(i)).ok());
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(kCount));
  EXPECT_EQ(client->indices(), UpTo(kCount));
  Index next = 0;
  for (const Element& element : client->TakeElements()) {
    ASSERT_EQ(element.tensor(0).scalar<int64_t>(), next);
    ASSERT_EQ(element.identity(), IdentityOf(next++));
  }
  EXPECT_TRUE(worker->AwaitLanded(kCount));
}

TEST_P(TransportConformance, ElementsOfEverySizeArriveWhole) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client, BlobSpec());
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  const std::vector<int64_t> sizes = {
      0, 1, 63, 64, 65, 4095, 65'535, 65'536, 3, 1 << 20, (1 << 20) + 1, 64 << 20, 17};
  link->Grant({static_cast<int64_t>(sizes.size())});
  ASSERT_TRUE(worker->AwaitGranted(sizes.size()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    ASSERT_TRUE(worker->link().Send(Blob(i, sizes[i])).ok());
  }
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(sizes.size()));
  EXPECT_EQ(client->indices(), UpTo(sizes.size()));
  Index index = 0;
  for (const Element& element : client->TakeElements()) {
    absl::Span<const uint8_t> values = element.tensor(0).data<uint8_t>();
    ASSERT_EQ(static_cast<int64_t>(values.size()), sizes[index]);
    int64_t wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      wrong += values[i] != static_cast<uint8_t>(i * 7 + index);
    }
    EXPECT_EQ(wrong, 0) << sizes[index] << " bytes";
    ++index;
  }
}

TEST_P(TransportConformance, AnElementWithoutTensorsIsAnElement) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client, Spec());
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({1});
  ASSERT_TRUE(worker->AwaitGranted(1));
  Element empty = *MakeElement(*sender_pool_, {}, Spec());
  empty.set_identity(IdentityOf(0));
  ASSERT_TRUE(worker->link().Send(std::move(empty)).ok());
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(1));
  EXPECT_EQ(client->TakeElements()[0].size(), 0u);
}

TEST_P(TransportConformance, AnErrorStandsInTheElementsPlace) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({3});
  ASSERT_TRUE(worker->AwaitGranted(3));
  ASSERT_TRUE(worker->link().Send(Number(0)).ok());
  ASSERT_TRUE(
      worker->link().SendError(IdentityOf(1), absl::DataLossError("train-3 at byte 77")).ok());
  ASSERT_TRUE(worker->link().Send(Number(2)).ok());
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(3));
  EXPECT_EQ(client->indices(), UpTo(3));
  EXPECT_THAT(client->errors(), ElementsAre(absl::DataLossError("train-3 at byte 77")));
  EXPECT_TRUE(worker->AwaitLanded(3));
}

TEST_P(TransportConformance, FlushSendsWhatWaitsForCompany) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({1000});
  ASSERT_TRUE(worker->AwaitGranted(1000));
  for (Index i = 0; i < 3; ++i) {  // one more each time, with most of the credits left
    ASSERT_TRUE(worker->link().Send(Number(i)).ok());
    worker->link().Flush();
    ASSERT_TRUE(client->AwaitCount(i + 1));
  }
}

TEST_P(TransportConformance, WhatIsNoElementOfTheSpecEndsTheLink) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client, Scalar(kFloat32));
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({1});
  ASSERT_TRUE(worker->AwaitGranted(1));
  ASSERT_TRUE(worker->link().Send(Number(0)).ok());
  worker->link().Flush();
  EXPECT_EQ(client->AwaitClosed().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(worker->AwaitClosed().ok());
  EXPECT_THAT(worker->unconfirmed(), ElementsAre(0));
  EXPECT_THAT(client->indices(), IsEmpty());
}

TEST_P(TransportConformance, AnElementAboveTheLimitEndsTheLink) {
  auto client = std::make_shared<ClientEnd>();
  DialOptions options = Options(BlobSpec());
  options.max_element_bytes = 100'000;
  auto link = transport_.Dial(worker_.address(), options, client);
  ASSERT_TRUE(link.ok()) << link.status();
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  (*link)->Grant({2});
  ASSERT_TRUE(worker->AwaitGranted(2));
  ASSERT_TRUE(worker->link().Send(Blob(0, 99'000)).ok());
  ASSERT_TRUE(worker->link().Send(Blob(1, 100'001)).ok());
  worker->link().Flush();
  absl::Status reason = client->AwaitClosed();
  EXPECT_EQ(reason.code(), absl::StatusCode::kDataLoss) << reason;
  EXPECT_THAT(std::string(reason.message()), HasSubstr("100000"));
  EXPECT_THAT(client->indices(), ElementsAre(0));
}

// --- Credits -------------------------------------------------------------------

TEST_P(TransportConformance, NothingIsSentWithoutACredit) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client);
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  Element element = Number(0);
  EXPECT_EQ(worker->link().Send(std::move(element)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(worker->link().SendError(IdentityOf(0), absl::DataLossError("")).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(element);  // stays the sender's
  link->Grant({1});
  ASSERT_TRUE(worker->AwaitGranted(1));
  EXPECT_EQ(worker->link().credits(), 1);
  EXPECT_TRUE(worker->link().Send(std::move(element)).ok());
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
  EXPECT_THAT(client->indices(), ElementsAre(0, 1));  // sent before, landed before
  EXPECT_EQ(worker->link().credits(), 0);
  EXPECT_EQ(worker->link().Send(Number(2)).code(), absl::StatusCode::kFailedPrecondition);
  link->Recall();
  link->Grant({1});  // behind the recall: stays
  ASSERT_TRUE(client->AwaitRecalled(2));
  EXPECT_THAT(client->recalled(), ElementsAre(3, 0));
  ASSERT_TRUE(worker->AwaitGranted(6));
  EXPECT_EQ(worker->link().credits(), 1);
}

TEST_P(TransportConformance, AnEventMaySendAndGrant) {
  constexpr Index kCount = 2000;
  auto client = std::make_shared<ClientEnd>();
  Index sent = 0;  // by events, which come one at a time
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

TEST_P(TransportConformance, TheSendersSlotsComeBackWhenElementsHaveLanded) {
  auto client = std::make_shared<ClientEnd>();
  auto link = Open(client, BlobSpec());
  std::shared_ptr<WorkerEnd> worker = worker_.Link(0);
  ASSERT_NE(worker, nullptr);
  link->Grant({20});
  ASSERT_TRUE(worker->AwaitGranted(20));
  for (Index i = 0; i < 20; ++i) ASSERT_TRUE(worker->link().Send(Blob(i, 100'000)).ok());
  worker->link().Flush();
  ASSERT_TRUE(client->AwaitCount(20));
  ASSERT_TRUE(worker->AwaitLanded(20));
  client->TakeElements();
  link.reset();
  EXPECT_TRUE(worker->AwaitClosed().ok());
  worker_.Stop();  // the transport has let go of everything
  EXPECT_EQ(sender_pool_->counters().bytes_lent, 0);
  EXPECT_EQ(receiver_pool_->counters().bytes_lent, 0);
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

// --- Closing -------------------------------------------------------------------

TEST_P(TransportConformance, TheWorkersReasonReachesTheClientBehindWhatWasSent) {
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

TEST_P(TransportConformance, AWorkerThatLetsGoOfItsLinkClosesIt) {
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

TEST_P(TransportConformance, TheLinkMayBeLetGoOfInsideItsOwnEvent) {
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
    if (i == 2) worker->link().Flush();  // what lands in one event lands whole
  }
  worker->link().Flush();
  EXPECT_TRUE(worker->AwaitClosed().ok());
  ASSERT_TRUE(client->AwaitCount(3));
  EXPECT_THAT(client->indices(), ElementsAre(0, 1, 2));
  EXPECT_FALSE(client->closed());
}

TEST_P(TransportConformance, WhatIsNotKnownToHaveLandedComesBackToTheSender) {
  int links = 0;
  for (Index stop_at : {0, 1, 7, 50, 400}) {
    auto client = std::make_shared<ClientEnd>();
    // Not of this scope: the event goes on with what came together.
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
    // With it may have landed what came in the same event.
    const std::vector<Index> indices = client->indices();
    EXPECT_EQ(indices, UpTo(indices.size()));
    // Reported as landed, or back: nothing else, in order, none missing.
    const int64_t landed = worker->landed();
    EXPECT_LE(landed, indices.size());
    std::vector<Index> back(sent - landed);
    std::iota(back.begin(), back.end(), landed);
    EXPECT_EQ(worker->unconfirmed(), back);
  }
}

TEST_P(TransportConformance, WhoUsesACreditKnowsWhatHadLandedBeforeItWasGranted) {
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
  EXPECT_TRUE(worker->AwaitLanded(kThreads * kEach));
}

}  // namespace penstock::transfer
