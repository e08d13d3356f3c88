// SPDX-License-Identifier: Apache-2.0
// In addition to the suite of all transports: foreign clients.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/transfer/message.h"
#include "dataplane/transfer/tcp/listener.h"
#include "dataplane/transfer/tcp/socket.h"
#include "dataplane/transfer/tcp/wire.h"
#include "gmock/gmock.h"
#include "tests/control/observe/count_refused.h"
#include "tests/control/observe/descriptors_left.h"
#include "tests/dataplane/transfer/conformance.h"
#include "tests/dataplane/transfer/tcp/tcp_peer.h"

namespace penstock::transfer {

INSTANTIATE_TEST_SUITE_P(Tcp, TransportConformance, testing::Values("tcp"));

namespace tcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMiB = 1 << 20;

class TcpTest : public testing::Test {
 protected:
  TcpTest() { EXPECT_TRUE(worker_.listening()); }

  static Hello AHello(std::string token = "sesame") {
    return {.token = std::move(token), .client = ClientId(3), .iteration = IterationId(6)};
  }
  // Opens a link whose client is `peer`, with that many credits.
  std::shared_ptr<WorkerEnd> Open(Peer& peer, int64_t credits, size_t number = 0) {
    EXPECT_TRUE(peer.Write(WithPrefix(Encode(AHello()))));
    EXPECT_TRUE(peer.Write(WithPrefix(Encode(Update{.granted = credits}))));
    std::shared_ptr<WorkerEnd> worker = worker_.Link(number);
    EXPECT_TRUE(worker != nullptr && worker->AwaitGranted(credits));
    EXPECT_EQ(peer.ReadMessage(), Encode(Welcome()));
    return worker;
  }
  // Sends the bytes to the worker; returns the reason with which it ends the
  // link.
  absl::Status AnswerTo(std::string_view bytes) {
    Peer peer = Peer::Dial(worker_.address());
    EXPECT_TRUE(peer.Write(bytes));
    absl::StatusOr<Message> answer = Decode(peer.ReadMessage());
    EXPECT_TRUE(answer.ok() && std::holds_alternative<Closed>(*answer)) << answer.status();
    EXPECT_TRUE(peer.AtEnd());
    return answer.ok() ? std::get<Closed>(*answer).reason : answer.status();
  }
  // Expects that a client of ours is let in as before.
  void ExpectOpenTo(const std::string& address) {
    auto client = std::make_shared<ClientEnd>();
    DialOptions options;
    options.hello = AHello();
    auto link = transport_.Dial(address, options, client);
    ASSERT_TRUE(link.ok()) << link.status();
    EXPECT_TRUE(client->AwaitOpen());
  }
  Element Blob(Index index, int64_t bytes) {
    const std::vector<uint8_t> values(bytes, static_cast<uint8_t>(index));
    const int64_t dims[] = {bytes};
    Element element = *MakeElement(*pool_, {Tensor(kUInt8, dims, values.data())}, Spec(BlobSpec()));
    element.set_identity({.partition = PartitionId(1), .placement = Placement(1), .index = index});
    return element;
  }

  Transport& transport_ = **FindTransport("tcp");
  std::shared_ptr<Pool> pool_ = Pool::Create();
  Worker worker_{transport_};
};

// --- Unauthenticated clients at a worker's port
// ----------------------------------

TEST_F(TcpTest, GarbageIsAnsweredAndTheConnectionClosed) {
  EXPECT_EQ(AnswerTo("GET / HTTP/1.1\r\nHost: worker\r\n\r\n").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(AnswerTo(std::string(64, '\xff')).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(AnswerTo(std::string(64, '\0')).code(), absl::StatusCode::kDataLoss);
  ExpectOpenTo(worker_.address());
}

TEST_F(TcpTest, AnEnormousHelloIsRefusedByItsLength) {
  const int64_t before = RefusedSoFar("tcp", "too_long");
  const Head head = HeadOf(MessageType::kHello, 0, uint64_t{1} << 60, 0);
  absl::Status reason = AnswerTo({head.data(), head.size()});
  EXPECT_EQ(reason.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(reason.message()), HasSubstr("1152921504606846976 bytes"));
  EXPECT_EQ(RefusedSoFar("tcp", "too_long"), before + 1);
}

TEST_F(TcpTest, AWrongTokenIsRefusedInWords) {
  absl::Status reason = AnswerTo(WithPrefix(Encode(AHello("open"))));
  EXPECT_EQ(reason.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(reason.message()), HasSubstr("wrong token"));
}

TEST_F(TcpTest, AnotherVersionIsRefusedInWords) {
  std::string hello = Encode(AHello());
  hello[kMessageHeaderBytes] = 9;
  EXPECT_EQ(AnswerTo(WithPrefix(hello)).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(TcpTest, CreditsBeforeTheHelloAreRefused) {
  EXPECT_EQ(AnswerTo(WithPrefix(Encode(Update{.granted = 5}))).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(TcpTest, AHelloMayComeByteByByte) {
  Peer peer = Peer::Dial(worker_.address());
  for (char byte : WithPrefix(Encode(AHello()))) {
    ASSERT_TRUE(peer.Write({&byte, 1}));
  }
  EXPECT_EQ(peer.ReadMessage(), Encode(Welcome()));
}

TEST_F(TcpTest, ASilentClientIsTurnedAway) {
  const int64_t before = RefusedSoFar("tcp", "too_late");
  auto listener = StartListener(
      {}, [](const Hello&, std::shared_ptr<SendLink>) { return absl::InternalError("no hello"); },
      {.hello_timeout = std::chrono::milliseconds(1)});
  ASSERT_TRUE(listener.ok()) << listener.status();
  Peer silent = Peer::Dial((*listener)->address());
  EXPECT_TRUE(silent.AtEnd());
  Peer slow = Peer::Dial((*listener)->address());
  slow.Write(WithPrefix(Encode(AHello())).substr(0, 20));
  EXPECT_TRUE(slow.AtEnd());
  EXPECT_EQ(RefusedSoFar("tcp", "too_late"), before + 2);
}

TEST_F(TcpTest, OfTooManyUnauthenticatedClientsTheOldestGoes) {
  const int64_t before = RefusedSoFar("tcp", "too_many");
  std::vector<std::shared_ptr<SendLink>> links;
  auto listener = StartListener({},
                                [&](const Hello&, std::shared_ptr<SendLink> link) {
                                  links.push_back(link);
                                  return std::make_shared<WorkerEnd>(std::move(link));
                                },
                                {.count = 3});
  ASSERT_TRUE(listener.ok()) << listener.status();
  Peer first = Peer::Dial((*listener)->address());
  std::vector<Peer> others;
  for (int i = 0; i < 3; ++i) others.push_back(Peer::Dial((*listener)->address()));
  EXPECT_TRUE(first.AtEnd());
  EXPECT_EQ(RefusedSoFar("tcp", "too_many"), before + 1);
  ExpectOpenTo((*listener)->address());
}

TEST_F(TcpTest, AConnectionThatWaitsIsServedWhenAnotherClientProvesItself) {
  std::vector<ClientId> admitted;  // used by the listener's thread until the second is welcome
  auto listener = StartListener({},
                                [&](const Hello& hello, std::shared_ptr<SendLink> link) {
                                  admitted.push_back(hello.client);
                                  return std::make_shared<WorkerEnd>(std::move(link));
                                },
                                {.pace = {.places = 1, .per_place = absl::InfiniteDuration()}});
  ASSERT_TRUE(listener.ok()) << listener.status();
  const std::string hello = WithPrefix(Encode(Hello{.token = "sesame", .client = ClientId(1)}));
  Peer first = Peer::Dial((*listener)->address());
  ASSERT_TRUE(first.Write(hello.substr(0, 20)));
  Peer second = Peer::Dial((*listener)->address());
  ASSERT_TRUE(second.Write(WithPrefix(Encode(Hello{.token = "sesame", .client = ClientId(2)}))));
  ASSERT_TRUE(first.Write(hello.substr(20)));
  EXPECT_EQ(first.ReadMessage(), Encode(Welcome()));
  EXPECT_EQ(second.ReadMessage(), Encode(Welcome()));
  EXPECT_THAT(admitted, ElementsAre(ClientId(1), ClientId(2)));
}

TEST_F(TcpTest, WithoutADescriptorForAClientItWaitsForOneAndSleeps) {
  const Endpoint at = LookUp(*ParseAddress(worker_.address()), /*numeric=*/false)->front();
  Socket socket(::socket(at.address.ss_family, SOCK_STREAM, 0));
  {
    const DescriptorsLeft none(0);
    ASSERT_EQ(::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&at.address), at.bytes), 0);
    EXPECT_LT(CpuTimeOfASecond(), absl::Milliseconds(300));
  }
  Peer peer(std::move(socket));
  Open(peer, 1);
}

TEST_F(TcpTest, ClientsLeaveDescriptorsFree) {
  const Endpoint at = LookUp(*ParseAddress(worker_.address()), /*numeric=*/false)->front();
  std::vector<Socket> clients;
  for (int i = 0; i < 60; ++i) clients.emplace_back(::socket(at.address.ss_family, SOCK_STREAM, 0));
  const int last = clients.back().fd();
  const timeval few_seconds{5, 0};  // less than the time for a hello
  setsockopt(last, SOL_SOCKET, SO_RCVTIMEO, &few_seconds, sizeof few_seconds);
  std::optional<DescriptorsLeft> few(40);
  for (const Socket& client : clients)
    EXPECT_EQ(::connect(client.fd(), reinterpret_cast<const sockaddr*>(&at.address), at.bytes), 0);
  char byte;
  EXPECT_TRUE(recv(last, &byte, 1, 0) == 0 || errno == ECONNRESET) << "it is not closed";
  const int ours = dup(STDERR_FILENO);
  EXPECT_GE(ours, 0);
  close(ours);
  few.reset();
  clients.clear();
  ExpectOpenTo(worker_.address());
}

TEST_F(TcpTest, AHelloThatWasAlteredAnywhereIsRefused) {
  const std::string hello = WithPrefix(Encode(AHello()));
  for (size_t at = 0; at < hello.size(); ++at) {
    std::string altered = hello;
    altered[at] = static_cast<char>(altered[at] ^ 0x10);
    ASSERT_EQ(AnswerTo(altered).code(), absl::StatusCode::kDataLoss) << at;
  }
}

// --- Clients that are let in
// -----------------------------------------------------

TEST_F(TcpTest, ARequestThatIsTooLongEndsTheLink) {
  Peer peer = Peer::Dial(worker_.address());
  std::shared_ptr<WorkerEnd> worker = Open(peer, 1);
  ASSERT_NE(worker, nullptr);
  const Head head = HeadOf(MessageType::kUpdate, 0, kMiB, 0);
  ASSERT_TRUE(peer.Write({head.data(), head.size()}));
  EXPECT_EQ(std::get<Closed>(*Decode(peer.ReadMessage())).reason.code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(peer.AtEnd());
  peer.Kill();
  EXPECT_EQ(worker->AwaitClosed().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TcpTest, AClientThatReceivesMoreThanWasSentIsDisbelieved) {
  Peer peer = Peer::Dial(worker_.address());
  std::shared_ptr<WorkerEnd> worker = Open(peer, 1);
  ASSERT_NE(worker, nullptr);
  ASSERT_TRUE(peer.Write(WithPrefix(Encode(Update{.received = 1}))));
  EXPECT_EQ(std::get<Closed>(*Decode(peer.ReadMessage())).reason.code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(worker->received(), 0);
}

TEST_F(TcpTest, AKilledClientsUnconfirmedElementsComeBack) {
  Peer peer = Peer::Dial(worker_.address());
  std::shared_ptr<WorkerEnd> worker = Open(peer, 20);
  ASSERT_NE(worker, nullptr);
  for (Index i = 0; i < 20; ++i) ASSERT_TRUE(worker->link().Send(Blob(i, kMiB)).ok());
  EXPECT_FALSE(peer.ReadMessage().empty());
  EXPECT_FALSE(peer.ReadMessage().empty());
  ASSERT_TRUE(peer.Write(WithPrefix(Encode(Update{.received = 1}))));
  ASSERT_TRUE(worker->AwaitReceived(1));
  EXPECT_EQ(peer.Read(1000).size(), 1000u);  // in the middle of the third
  peer.Kill();
  EXPECT_EQ(worker->AwaitClosed().code(), absl::StatusCode::kUnavailable);
  std::vector<Index> back = worker->unconfirmed();
  ASSERT_EQ(back.size(), 19u);
  EXPECT_EQ(back.front(), 1);
  EXPECT_EQ(back.back(), 19);
}

TEST_F(TcpTest, ElementsThatMayWaitForMoreArriveByThemselvesInOrder) {
  Peer peer = Peer::Dial(worker_.address());
  std::shared_ptr<WorkerEnd> worker = Open(peer, 8);
  ASSERT_NE(worker, nullptr);
  std::vector<Element> elements;  // made in advance, so that they follow each other fast
  for (int64_t bytes : {102'400, 102'400, 1'024, 102'400, 1'024'000, 102'400, 1'024, 71'680}) {
    elements.push_back(Blob(static_cast<Index>(elements.size()), bytes));
  }
  for (Element& element : elements) ASSERT_TRUE(worker->link().Send(std::move(element)).ok());
  for (Index i = 0; i < 8; ++i) {
    const std::string message = peer.ReadMessage();
    const bool in_frame = i == 2 || i == 6;
    ASSERT_EQ(*TypeOf(message), in_frame ? MessageType::kFrame : MessageType::kElement);
    EXPECT_EQ(message.back(), static_cast<char>(i));
  }
}

TEST_F(TcpTest, ARecallIsAnsweredAfterWaitingElements) {
  Peer peer = Peer::Dial(worker_.address());
  std::shared_ptr<WorkerEnd> worker = Open(peer, 5);
  ASSERT_NE(worker, nullptr);
  Element elements[] = {Blob(0, 102'400), Blob(1, 102'400)};
  for (Element& element : elements) ASSERT_TRUE(worker->link().Send(std::move(element)).ok());
  ASSERT_TRUE(peer.Write(WithPrefix(Encode(Update{.recall = true}))));
  EXPECT_EQ(*TypeOf(peer.ReadMessage()), MessageType::kElement);
  EXPECT_EQ(*TypeOf(peer.ReadMessage()), MessageType::kElement);
  EXPECT_EQ(peer.ReadMessage(), Encode(Recalled{3}));
}

TEST_F(TcpTest, ARequestThatWasAlteredEndsTheLinkAndIsNotHeard) {
  Peer peer = Peer::Dial(worker_.address());
  std::shared_ptr<WorkerEnd> worker = Open(peer, 2);
  ASSERT_NE(worker, nullptr);
  ASSERT_TRUE(worker->link().Send(Blob(0, kMiB)).ok());
  std::string update = WithPrefix(Encode(Update{.received = 1}));
  update.back() ^= 1;
  ASSERT_TRUE(peer.Write(update));
  EXPECT_FALSE(peer.ReadMessage().empty());  // the element
  EXPECT_EQ(std::get<Closed>(*Decode(peer.ReadMessage())).reason.code(),
            absl::StatusCode::kDataLoss);
  peer.Kill();
  EXPECT_EQ(worker->AwaitClosed().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(worker->received(), 0);
  EXPECT_THAT(worker->unconfirmed(), ElementsAre(0));
}

TEST_F(TcpTest, ManyRequestsInOnePacketAreAllHeard) {
  Peer peer = Peer::Dial(worker_.address());
  std::shared_ptr<WorkerEnd> worker = Open(peer, 1);
  ASSERT_NE(worker, nullptr);
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += WithPrefix(Encode(Update{.granted = 1}));
  ASSERT_TRUE(peer.Write(requests));
  EXPECT_TRUE(worker->AwaitGranted(1001));
  ASSERT_TRUE(peer.Write(WithPrefix(Encode(Goodbye()))));
  EXPECT_TRUE(worker->AwaitClosed().ok());
}

TEST_F(TcpTest, AClientThatDoesNotReadStopsItsSenderAndNoOther) {
  constexpr int64_t kCount = 64;  // MiB; more than the sockets take
  Peer stopped = Peer::Dial(worker_.address());
  std::shared_ptr<WorkerEnd> to_stopped = Open(stopped, kCount, 0);
  Peer other = Peer::Dial(worker_.address());
  std::shared_ptr<WorkerEnd> to_other = Open(other, 1, 1);
  ASSERT_TRUE(to_stopped != nullptr && to_other != nullptr);
  for (Index i = 0; i < kCount; ++i) {
    ASSERT_TRUE(to_stopped->link().Send(Blob(i, kMiB)).ok());
  }
  const int64_t held = pool_->counters().bytes_lent;
  EXPECT_EQ(to_stopped->link().Send(Blob(kCount, kMiB)).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(pool_->counters().bytes_lent, held);
  ASSERT_TRUE(to_other->link().Send(Blob(0, kMiB)).ok());
  EXPECT_GT(other.ReadMessage().size(), static_cast<size_t>(kMiB));
  for (Index i = 0; i < kCount; ++i) {  // and goes on where it stopped
    const std::string message = stopped.ReadMessage();
    ASSERT_GT(message.size(), static_cast<size_t>(kMiB));
    EXPECT_EQ(message.back(), static_cast<char>(i));
  }
}

TEST_F(TcpTest, AWorkerStopsThoughAClientDoesNotRead) {
  Peer peer = Peer::Dial(worker_.address());
  std::shared_ptr<WorkerEnd> worker = Open(peer, 64);
  ASSERT_NE(worker, nullptr);
  for (Index i = 0; i < 64; ++i) ASSERT_TRUE(worker->link().Send(Blob(i, kMiB)).ok());
  worker_.Stop();
  EXPECT_EQ(worker->AwaitClosed().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(worker->unconfirmed().size(), 64u);
}

}  // namespace
}  // namespace tcp
}  // namespace penstock::transfer
