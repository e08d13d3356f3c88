// SPDX-License-Identifier: Apache-2.0
// Several messages to a worker in one, over real connections.
#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/stub/dispatcher_stub.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/peers.h"
#include "tests/control/dispatcher/server/port_fixture.h"

namespace penstock::control {
namespace {

class Worker : public Peer<WorkerUp, WorkerDown> {
 public:
  explicit Worker(DispatcherStub& stub) { session_ = stub.OpenWorkerSession(events()); }
};

// A stream of a worker, message by message as they come.
class Sender {
 public:
  explicit Sender(wire::Dispatcher::Stub& stub) : stream_(stub.WorkerSession(&context_)) {}
  ~Sender() {
    context_.TryCancel();
    stream_->Finish();
  }
  void Send(const WorkerUp& message) {
    wire::WorkerUp up;
    ToWire(message, &up);
    EXPECT_TRUE(stream_->Write(up));
  }
  wire::WorkerDown Next() {
    wire::WorkerDown down;
    EXPECT_TRUE(stream_->Read(&down));
    return down;
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<wire::WorkerUp, wire::WorkerDown>> stream_;
};

// The dispatcher does not know the iteration of a worker's partitions. The worker must drop each.
class JoinedMessagesTest : public PortTest {
 protected:
  void SetUp() override {
    Start({});
    Sender sender(*stub_);
    sender.Send(Hello(0));
    journal_ = sender.Next().welcome().life().journal();
  }

  WorkerHello Hello(uint64_t partitions) const {
    WorkerHello hello{
        .worker = WorkerId(7), .address = "127.0.0.1:1", .permits = 1, .process = Incarnation(1)};
    for (uint64_t i = 1; i <= partitions; ++i)
      hello.held.push_back({IterationId(1), PartitionId(i), Placement(1), journal_});
    return hello;
  }

  uint64_t journal_ = 0;
};

TEST_F(JoinedMessagesTest, OfOneTransactionComeInOne) {
  Sender sender(*stub_);
  sender.Send(Hello(100));
  const wire::WorkerDown first = sender.Next();
  EXPECT_TRUE(first.has_welcome());
  ASSERT_EQ(first.more_size(), 100);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(first.more(i).unassign().partition(), static_cast<uint64_t>(i + 1));
    EXPECT_EQ(first.more(i).sequence(), first.sequence());
  }
}

TEST_F(JoinedMessagesTest, AreAFewTensOfKilobytesLong) {
  constexpr int kPartitions = 10'000;
  Sender sender(*stub_);
  sender.Send(Hello(kPartitions));
  int messages = 0, received = 0;
  for (; received < kPartitions + 1; ++messages) {
    const wire::WorkerDown down = sender.Next();
    EXPECT_LT(down.ByteSizeLong(), 100'000u);
    received += 1 + down.more_size();
  }
  EXPECT_EQ(received, kPartitions + 1);
  EXPECT_GT(messages, 1);
  EXPECT_LT(messages, 20);
}

TEST_F(JoinedMessagesTest, ThatWaitedKeepTheirOrder) {
  constexpr uint64_t kHeartbeats = 5000;
  Sender sender(*stub_);
  sender.Send(Hello(0));
  for (uint64_t counter = 1; counter <= kHeartbeats; ++counter)
    sender.Send(WorkerHeartbeat{.counter = counter});
  EXPECT_TRUE(sender.Next().has_welcome());
  uint64_t last = 0;
  while (last < kHeartbeats && !HasFailure()) {
    const wire::WorkerDown down = sender.Next();
    EXPECT_EQ(down.heartbeat().counter(), ++last);
    for (const wire::WorkerDown& further : down.more())
      EXPECT_EQ(further.heartbeat().counter(), ++last);
  }
}

TEST_F(JoinedMessagesTest, ComeOneByOneToAPeerOfAnEarlierVersion) {
  WorkerHello hello = Hello(100);
  hello.version.max = kFirstWithJoinedMessages - 1;
  Sender sender(*stub_);
  sender.Send(hello);
  EXPECT_TRUE(sender.Next().has_welcome());
  for (uint64_t i = 1; i <= 100; ++i) {
    const wire::WorkerDown down = sender.Next();
    EXPECT_EQ(down.unassign().partition(), i);
    EXPECT_EQ(down.more_size(), 0);
  }
}

TEST_F(JoinedMessagesTest, AreDeliveredOneByOne) {
  const auto stub = DispatcherStub::Make(absl::StrCat("127.0.0.1:", listener_->port()));
  ASSERT_TRUE(stub.ok()) << stub.status();
  Worker worker(**stub);
  worker.Send(Hello(100));
  worker.Next<WorkerWelcome>();
  for (uint64_t i = 1; i <= 100; ++i) EXPECT_EQ(worker.Next<Unassign>().of.partition.value(), i);
}

}  // namespace
}  // namespace penstock::control
