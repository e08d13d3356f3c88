// SPDX-License-Identifier: Apache-2.0
// Links over several connections: everything is received in the order of sending.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/element/block.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/tcp/wire.h"
#include "gmock/gmock.h"
#include "tests/dataplane/transfer/conformance.h"
#include "tests/dataplane/transfer/tcp/tcp_peer.h"

namespace penstock::transfer {

INSTANTIATE_TEST_SUITE_P(TcpStripes, TransportConformance, testing::Values("tcp*"));

namespace tcp {
namespace {

constexpr int64_t kLarge = 300 << 10;  // bytes: goes over all connections

Element Blob(Index index, int64_t bytes = kLarge, Pool& pool = DefaultPool()) {
  const std::vector<uint8_t> values(bytes, static_cast<uint8_t>(index));
  const int64_t dims[] = {bytes};
  Element element = *MakeElement(pool, {Tensor(kUInt8, dims, values.data())}, Spec(BlobSpec()));
  element.set_identity(IdentityOf(index));
  return element;
}

// One of our links, over four connections.
class StripesTest : public testing::Test {
 protected:
  StripesTest() {
    DialOptions options;
    options.hello = {.token = "sesame", .client = ClientId(3), .iteration = IterationId(6)};
    options.spec = BlobSpec();
    options.pool = receiver_pool_.get();
    options.timeout = absl::Minutes(1);
    options.tcp.connections = 4;
    auto link = transport_.Dial(worker_.address(), options, client_);
    EXPECT_TRUE(link.ok()) << link.status();
    link_ = *std::move(link);
    EXPECT_TRUE(client_->AwaitOpen());
    end_ = worker_.Link(0);
  }

  absl::Status Send(Index index, int64_t bytes) {
    return end_->link().Send(Blob(index, bytes, *sender_pool_));
  }

  Transport& transport_ = **FindTransport("tcp");
  std::shared_ptr<Pool> sender_pool_ = Pool::Create();
  std::shared_ptr<Pool> receiver_pool_ = Pool::Create();
  Worker worker_{transport_};
  std::shared_ptr<ClientEnd> client_ = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link_;
  std::shared_ptr<WorkerEnd> end_;
};

TEST_F(StripesTest, ElementsOfAllSizesAndErrorsAreReceivedInTheOrderOfSending) {
  constexpr Index kCount = 3000;
  link_->Grant({kCount});
  ASSERT_TRUE(end_->AwaitGranted(kCount));
  for (Index i = 0; i < kCount; ++i) {
    if (i % 97 == 5) {
      ASSERT_TRUE(end_->link().Send(Sent(IdentityOf(i), absl::InternalError("no"))).ok());
    } else {
      ASSERT_TRUE(Send(i, i % 3 == 0 ? 100 : i % 3 == 1 ? kLarge : 2 * kLarge + i).ok());
    }
    if (i % 50 == 0) end_->link().Flush();
  }
  end_->link().Flush();
  ASSERT_TRUE(client_->AwaitCount(kCount));
  EXPECT_EQ(client_->indices(), UpTo(kCount));
  for (const Element& element : client_->TakeElements()) {
    const absl::Span<const uint8_t> values = element.tensor(0).data<uint8_t>();
    const auto value = static_cast<uint8_t>(element.identity().index);
    ASSERT_TRUE(std::all_of(values.begin(), values.end(), [&](uint8_t v) { return v == value; }))
        << element.identity().index;
  }
  ASSERT_TRUE(end_->AwaitReceived(kCount));
  std::vector<Index> acknowledged;
  for (const Acknowledged& one : end_->acknowledged()) acknowledged.push_back(one.identity.index);
  EXPECT_EQ(acknowledged, UpTo(kCount));
}

TEST_F(StripesTest, ARecallIsAnsweredAfterSentElements) {
  for (int round = 0; round < 50; ++round) {
    link_->Grant({10});
    ASSERT_TRUE(end_->AwaitGranted(10 * (round + 1)));
    for (Index i = 0; i < 6; ++i) ASSERT_TRUE(Send(6 * round + i, kLarge).ok());
    link_->Recall();
    ASSERT_TRUE(client_->AwaitRecalled(round + 1));
    ASSERT_EQ(client_->indices(), UpTo(6 * (round + 1)));
  }
  EXPECT_EQ(client_->recalled(), std::vector<int64_t>(50, 4));
}

TEST_F(StripesTest, AReasonToCloseComesAfterAllThatWasSent) {
  link_->Grant({40});
  ASSERT_TRUE(end_->AwaitGranted(40));
  for (Index i = 0; i < 40; ++i) ASSERT_TRUE(Send(i, kLarge).ok());
  end_->link().Close(absl::AbortedError("enough"));
  EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(client_->indices(), UpTo(40));
  EXPECT_TRUE(end_->AwaitClosed().code() == absl::StatusCode::kAborted);
  EXPECT_TRUE(Eventually([&] {
    client_->TakeElements();
    return receiver_pool_->counters().bytes_lent == 0;
  }));
}

TEST_F(StripesTest, AClientThatClosesInTheMiddleKeepsNothing) {
  client_->LookAtElements([this](const Element& element) {
    if (element.identity().index == 20) link_.reset();
  });
  link_->Grant({400});
  ASSERT_TRUE(end_->AwaitGranted(400));
  Index sent = 0;
  while (sent < 400 && Send(sent, kLarge).ok()) ++sent;
  EXPECT_TRUE(end_->AwaitClosed().ok());
  ASSERT_TRUE(client_->AwaitCount(21));
  EXPECT_EQ(client_->indices(), UpTo(21));
  EXPECT_EQ(end_->received() + std::ssize(end_->unconfirmed()), sent);
  client_->TakeElements();
  EXPECT_EQ(receiver_pool_->counters().bytes_lent, 0);
  end_->ForgetUnconfirmed();
  EXPECT_TRUE(Eventually([&] { return sender_pool_->counters().bytes_lent == 0; }));
}

TEST_F(StripesTest, AStoppingWorkerReturnsUnreceivedElements) {
  link_->Grant({400});
  ASSERT_TRUE(end_->AwaitGranted(400));
  for (Index i = 0; i < 400; ++i) ASSERT_TRUE(Send(i, kLarge).ok());
  worker_.Stop();
  EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(end_->received() + std::ssize(end_->unconfirmed()), 400);
}

// --- Foreign peers -------------------------------------------------------------------

// A worker of ours. The test plays its client, `first_`, with that many credits.
class StripesOfAPeerTest : public testing::Test {
 protected:
  void SendHello(int64_t credits, uint8_t flags = kWantsStripes) {
    const Hello hello{.token = "sesame", .client = ClientId(3), .iteration = IterationId(6)};
    ASSERT_TRUE(first_.Write(WithPrefix(Encode(hello), flags)));
    ASSERT_TRUE(first_.Write(WithPrefix(Encode(Update{.granted = credits}))));
    end_ = worker_.Link(0);
    ASSERT_TRUE(end_ != nullptr && end_->AwaitGranted(credits));
    ASSERT_EQ(first_.ReadMessage(), Encode(Welcome()));
    if ((flags & kWantsStripes) == 0) return;
    const auto stripes = Decode(first_.ReadMessage());
    ASSERT_TRUE(stripes.ok() && std::holds_alternative<Stripes>(*stripes));
    key_ = std::get<Stripes>(*stripes).key;
  }
  Peer JoinWith(const Join& join) {
    Peer peer = Peer::Dial(worker_.address());
    EXPECT_TRUE(peer.Write(WithPrefix(Encode(join))));
    return peer;
  }
  // Joins a further connection; returns when elements come over it.
  Peer Joined(uint32_t number) {
    Peer peer = JoinWith({key_, number});
    const std::string expected = Encode(Striped{number});
    for (int tries = 0; tries < 10'000; ++tries) {
      EXPECT_TRUE(end_->link().Send(Blob(sent_++)).ok());
      if (first_.ReadMessage() != expected) continue;
      EXPECT_EQ(*TypeOf(peer.ReadMessage()), MessageType::kElement);
      return peer;
    }
    ADD_FAILURE() << "it never joins";
    return peer;
  }
  Worker worker_{**FindTransport("tcp")};
  Peer first_ = Peer::Dial(worker_.address());
  std::shared_ptr<WorkerEnd> end_;
  StripeKey key_;
  Index sent_ = 0;
};

TEST_F(StripesOfAPeerTest, APeerThatWantsNoStripesGetsNone) {
  SendHello(1, 0);
  ASSERT_TRUE(end_->link().Send(Blob(0)).ok());
  EXPECT_EQ(*TypeOf(first_.ReadMessage()), MessageType::kElement);
}

TEST_F(StripesOfAPeerTest, AWrongKeyIsRefusedAndTheLinkGoesOn) {
  SendHello(2);
  for (const StripeKey key : {StripeKey(), StripeKey{key_.high, key_.low ^ 1}}) {
    Peer peer = JoinWith({key, 0});
    const auto answer = Decode(peer.ReadMessage());
    ASSERT_TRUE(answer.ok() && std::holds_alternative<Closed>(*answer));
    EXPECT_EQ(std::get<Closed>(*answer).reason.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_TRUE(peer.AtEnd());
  }
  for (Index i = 0; i < 2; ++i) {
    ASSERT_TRUE(end_->link().Send(Blob(i)).ok());
    EXPECT_EQ(*TypeOf(first_.ReadMessage()), MessageType::kElement);
  }
}

TEST_F(StripesOfAPeerTest, ANumberBeyondAllIsRefused) {
  SendHello(1);
  for (const uint32_t number : {15u, 0xffffffffu}) {
    Peer peer = JoinWith({key_, number});
    const auto answer = Decode(peer.ReadMessage());
    ASSERT_TRUE(answer.ok() && std::holds_alternative<Closed>(*answer));
    EXPECT_EQ(std::get<Closed>(*answer).reason.code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(StripesOfAPeerTest, AJoinWithAUsedNumberIsClosedAndTheLinkGoesOn) {
  SendHello(10'010);
  Peer second = Joined(3);
  EXPECT_TRUE(JoinWith({key_, 3}).AtEnd());
  ASSERT_TRUE(end_->link().Send(Blob(sent_++)).ok());
  EXPECT_FALSE(first_.ReadMessage().empty());
}

TEST_F(StripesOfAPeerTest, ABrokenConnectionBreaksTheLinkAndReturnsItsElements) {
  SendHello(10'010);
  Peer second = Joined(0);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(end_->link().Send(Blob(sent_++)).ok());
  second.Kill();
  EXPECT_EQ(end_->AwaitClosed().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(std::ssize(end_->unconfirmed()), sent_);
}

TEST_F(StripesOfAPeerTest, AConnectionThatSpeaksBreaksTheLink) {
  SendHello(10'010);
  Peer second = Joined(0);
  ASSERT_TRUE(second.Write("x"));
  EXPECT_EQ(end_->AwaitClosed().code(), absl::StatusCode::kUnavailable);
}

// A client of ours. The test plays its worker, `first_` and `second_`.
class StripesToAPeerTest : public testing::Test {
 protected:
  void Open(int connections) {
    PeerPort port;
    DialOptions options;
    options.spec = BlobSpec();
    options.pool = pool_.get();
    options.timeout = absl::Minutes(1);
    options.tcp.connections = connections;
    auto link = (*FindTransport("tcp"))->Dial(port.address(), options, client_);
    ASSERT_TRUE(link.ok()) << link.status();
    link_ = *std::move(link);
    link_->Grant({1});
    first_.emplace(port.Accept());
    ASSERT_FALSE(first_->ReadMessage().empty());  // its hello
    ASSERT_TRUE(first_->Write(WithPrefix(Encode(Welcome()))));
    ASSERT_TRUE(first_->Write(WithPrefix(Encode(Stripes{{7, 8}}))));
    if (connections == 1) return;
    second_.emplace(port.Accept());
    EXPECT_EQ(second_->ReadMessage(), Encode(Join{{7, 8}, 0}));
  }
  bool SayStriped(uint32_t stripe) { return first_->Write(WithPrefix(Encode(Striped{stripe}))); }
  bool SendOverSecond() {
    const Element element = Blob(0);
    const Head head = HeadOf(MessageType::kElement, 0, element.block());
    return second_->Write({head.data(), head.size()}) &&
           second_->Write(
               {reinterpret_cast<const char*>(element.block().data()), element.block().size()});
  }

  std::shared_ptr<Pool> pool_ = Pool::Create();
  std::shared_ptr<ClientEnd> client_ = std::make_shared<ClientEnd>();
  std::unique_ptr<ReceiveLink> link_;
  std::optional<Peer> first_, second_;
};

TEST_F(StripesToAPeerTest, OffersThatWereNotAskedForAreDataLoss) {
  Open(1);
  EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kDataLoss);
}

TEST_F(StripesToAPeerTest, AnElementOverAConnectionThatIsNotThereIsDataLoss) {
  Open(2);
  ASSERT_TRUE(SayStriped(1));
  EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kDataLoss);
}

TEST_F(StripesToAPeerTest, MoreThanWasGrantedIsDataLossAndTakesNoMemory) {
  Open(2);
  ASSERT_TRUE(SendOverSecond());
  ASSERT_TRUE(SayStriped(0));
  ASSERT_TRUE(client_->AwaitCount(1));
  ASSERT_TRUE(SendOverSecond());
  ASSERT_TRUE(SayStriped(0));
  const absl::Status reason = client_->AwaitClosed();
  EXPECT_EQ(reason.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(reason.message()), testing::HasSubstr("granted"));
  EXPECT_EQ(pool_->counters().slots_lent, 1);
}

TEST_F(StripesToAPeerTest, AConnectionThatEndsBeforeItsTurnIsUnavailable) {
  Open(2);
  ASSERT_TRUE(SayStriped(0));
  second_->Kill();
  EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(pool_->counters().bytes_lent, 0);
}

TEST_F(StripesToAPeerTest, ARefusedConnectionIsReported) {
  Open(2);
  testing::internal::CaptureStderr();
  ASSERT_TRUE(second_->Write(WithPrefix(Encode(Closed{absl::PermissionDeniedError("not you")}))));
  ASSERT_TRUE(SayStriped(0));  // the client waits for this at its end
  EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::ContainsRegex("connection_not_joined .*not you"));
}

TEST_F(StripesToAPeerTest, TheFirstConnectionsEndIsSeenWhileAnotherHasTheTurn) {
  Open(2);
  ASSERT_TRUE(SayStriped(0));
  first_->Kill();
  EXPECT_EQ(client_->AwaitClosed().code(), absl::StatusCode::kUnavailable);
}

TEST_F(StripesToAPeerTest, EarlyElementsAreReleasedWithTheLink) {
  Open(2);
  ASSERT_TRUE(SendOverSecond());
  EXPECT_TRUE(Eventually([&] { return pool_->counters().slots_lent == 1; }));
  link_.reset();
  EXPECT_EQ(pool_->counters().bytes_lent, 0);
  EXPECT_TRUE(client_->indices().empty());
}

}  // namespace
}  // namespace tcp
}  // namespace penstock::transfer
