// SPDX-License-Identifier: Apache-2.0
// The dispatcher's port and the stub over the simulated network, with a real core.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/dispatcher/core.h"
#include "control/journal/journal.h"
#include "control/observe/event_log.h"
#include "control/stub/dispatcher_stub.h"
#include "control/sync/clock.h"
#include "control/sync/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/dispatcher/fixed_tokens.h"
#include "tools/simulator/engine/scheduler.h"
#include "tools/simulator/engine/trace.h"
#include "tools/simulator/world/network.h"
#include "tools/simulator/world/port.h"
#include "tools/simulator/world/stub.h"

namespace penstock::simulator {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kDispatcherAddress[] = "head:1";

control::RegisterDatasetRequest SomeDataset() {
  return {.definition = "definition",
          .summary = {.fingerprint = 7,
                      .cardinality = 10,
                      .nodes = {{"Range#0", 7}},
                      .plan = {{.node = "Range#0", .count = 10}}}};
}

// The events of a worker's stream.
class WorkerInbox final : public control::WorkerSessionEvents {
 public:
  void OnMessage(control::WorkerDown message, uint64_t sequence) override {
    messages.push_back(std::move(message));
    sequences.push_back(sequence);
  }
  void OnClosed(const absl::Status& status) override { closed = status; }

  std::vector<control::WorkerDown> messages;
  std::vector<uint64_t> sequences;
  std::optional<absl::Status> closed;
};

// A peer that sends bytes of its own.
class RawInbox final : public ConnectionEvents {
 public:
  void OnMessage(std::string message) override { messages.push_back(std::move(message)); }
  void OnClosed(const absl::Status& reason) override { closed = reason; }

  std::vector<std::string> messages;
  std::optional<absl::Status> closed;
};

class DispatcherPortTest : public ::testing::Test {
 protected:
  DispatcherPortTest() {
    control::CoreOptions options;
    options.now = BootTime;
    options.random = RandomNumber;
    options.job_tokens = control::FixedTokens;
    options.port_refuses = [this](const std::string& address) { return network_.Refuses(address); };
    options.events = SilentEventLog();
    core_ = control::Core::Open(std::move(options), control::OpenMemoryJournal()).value();
  }
  void OpenPort() { port_ = Port::Open(network_, head_, kDispatcherAddress, core_.get()).value(); }
  // Runs `what` to its end on a fiber of the peer, for at most `bound`.
  void AtPeer(std::function<void()> what, absl::Duration bound = absl::Seconds(5)) {
    bool done = false;
    scheduler_.StartIn(peer_, "peer", [&] {
      what();
      done = true;
    });
    RunFor(bound);
    EXPECT_TRUE(done);
  }
  // Opens a worker's session, whose messages go to `inbox`, and sends its hello.
  std::unique_ptr<control::WorkerSession> WorkerThatJoins(WorkerInbox& inbox) {
    std::unique_ptr<control::WorkerSession> session;
    AtPeer([&] {
      session = stub_->OpenWorkerSession(&inbox);
      session->Send(control::WorkerHello{.worker = WorkerId(1), .address = "a:2"});
    });
    return session;
  }
  void RunFor(absl::Duration time) {
    const absl::Time until = scheduler_.now() + time;
    scheduler_.At(until, peer_, [] {});  // the time passes even if nothing else happens
    const absl::Status ran = scheduler_.Run(until);
    EXPECT_TRUE(ran.ok()) << ran;
  }

  Trace trace_;
  Scheduler scheduler_{{.seed = 7}, trace_};
  Network network_{scheduler_};
  const SimScheme scheme_{network_};
  const std::shared_ptr<Process> head_ = scheduler_.NewProcess("head", "dispatcher");
  const std::shared_ptr<Process> peer_ = scheduler_.NewProcess("a", "peer");
  std::unique_ptr<control::Core> core_;
  std::unique_ptr<Port> port_;
  const std::unique_ptr<control::DispatcherStub> stub_ =
      control::DispatcherStub::Make("sim://head:1").value();
};

// In simulated time.
TEST_F(DispatcherPortTest, IsFoundWithinASecondBehindAddressesAtWhichNobodyListens) {
  OpenPort();
  const auto stub = control::DispatcherStub::Make("sim://b:1,c:1,d:1,head:1").value();
  AtPeer([&] {
    const absl::Time begun = BootTime();
    EXPECT_TRUE(stub->GetVersion({}).ok());
    EXPECT_LT(BootTime() - begun, absl::Seconds(1));
  });
  port_.reset();
  AtPeer([&] {
    const absl::Status none = stub->GetVersion({.timeout = absl::Seconds(1)}).status();
    EXPECT_THAT(std::string(none.message()),
                HasSubstr("no dispatcher answers at b:1,c:1,d:1,head:1 within 1s: b:1: "));
  });
}

TEST_F(DispatcherPortTest, AnswersCalls) {
  OpenPort();
  AtPeer([&] {
    EXPECT_EQ(stub_->address(), kDispatcherAddress);
    EXPECT_TRUE(stub_->GetVersion({}).ok());
    const auto registered = stub_->GetOrRegisterDataset(SomeDataset(), {});
    ASSERT_TRUE(registered.ok()) << registered.status();
    const auto found = stub_->GetDataset(registered->dataset_id, 0, {});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->definition, "definition");
    EXPECT_EQ(found->summary, SomeDataset().summary);
    const auto job =
        stub_->GetOrCreateJob({.name = "job", .dataset_id = registered->dataset_id}, {});
    ASSERT_TRUE(job.ok()) << job.status();
    const auto status = stub_->GetStatus({});
    ASSERT_TRUE(status.ok()) << status.status();
    ASSERT_EQ(status->jobs.size(), 1);
    EXPECT_EQ(stub_->CancelJob("job", {}), absl::OkStatus());
    EXPECT_EQ(stub_->RemoveJob("job", {}), absl::OkStatus());
    EXPECT_TRUE(absl::IsNotFound(stub_->CancelJob("job", {})));
  });
}

TEST_F(DispatcherPortTest, CallsAreRepeatedUntilADispatcherListens) {
  std::optional<bool> answered;
  scheduler_.StartIn(peer_, "peer", [&] { answered = stub_->GetVersion({}).ok(); });
  RunFor(absl::Seconds(5));
  EXPECT_EQ(answered, std::nullopt);
  OpenPort();
  RunFor(absl::Seconds(5));
  EXPECT_EQ(answered, true);
}

TEST_F(DispatcherPortTest, ACallGivesUpAfterItsTimeAndEndsWhenItIsStopped) {
  AtPeer([&] {
    const absl::Time begin = BootTime();
    const absl::Status none = stub_->GetVersion({.timeout = absl::Seconds(3)}).status();
    EXPECT_TRUE(absl::IsUnavailable(none));
    EXPECT_THAT(std::string(none.message()),
                HasSubstr("no dispatcher answers at head:1 within 3s"));
    EXPECT_LE(BootTime() - begin, absl::Seconds(3));
  });
  OpenPort();
  head_->Pause();
  absl::Status stopped;
  scheduler_.StartIn(peer_, "peer", [&] { stopped = stub_->GetVersion({}).status(); });
  RunFor(absl::Seconds(5));
  EXPECT_EQ(stopped, absl::OkStatus());
  stub_->Stop();
  RunFor(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
}

TEST_F(DispatcherPortTest, CarriesAStream) {
  OpenPort();
  AtPeer([&] { ASSERT_TRUE(stub_->GetOrRegisterDataset(SomeDataset(), {}).ok()); });
  WorkerInbox inbox;
  auto session = WorkerThatJoins(inbox);
  AtPeer([&] { session->Send(control::WorkerHeartbeat{.counter = 5}); });
  ASSERT_THAT(inbox.messages, Not(IsEmpty()));
  EXPECT_TRUE(std::holds_alternative<control::WorkerWelcome>(inbox.messages.front()));
  EXPECT_EQ(inbox.sequences.front(), core_->sequence());
  EXPECT_EQ(std::get<control::WorkerHeartbeatAnswer>(inbox.messages.back()).counter, 5);
  EXPECT_EQ(core_->NumWorkers(), 1);
  AtPeer([&] {
    session->Stop();
    session->Send(control::WorkerHeartbeat{.counter = 6});
  });
  EXPECT_EQ(inbox.closed, std::nullopt);
  session = nullptr;
}

TEST_F(DispatcherPortTest, ThePortsEndBreaksStreams) {
  OpenPort();
  WorkerInbox inbox;
  auto session = WorkerThatJoins(inbox);
  scheduler_.StartIn(head_, "ends", [&] { port_ = nullptr; });
  RunFor(absl::Seconds(1));
  ASSERT_TRUE(inbox.closed.has_value());
  EXPECT_TRUE(absl::IsUnavailable(*inbox.closed)) << *inbox.closed;
}

TEST_F(DispatcherPortTest, ThePeersOfAKilledDispatcherNotice) {
  OpenPort();
  WorkerInbox inbox;
  auto session = WorkerThatJoins(inbox);
  head_->Kill();
  network_.OnKilled(*head_);
  scheduler_.StartIn(head_, "ends", [&] { port_ = nullptr; });
  RunFor(absl::Seconds(1));
  ASSERT_TRUE(inbox.closed.has_value());
  EXPECT_TRUE(absl::IsUnavailable(*inbox.closed)) << *inbox.closed;
}

TEST_F(DispatcherPortTest, AnUnreadableMessageEndsItsStream) {
  OpenPort();
  const auto inbox = std::make_shared<RawInbox>();
  std::unique_ptr<Connection> connection;
  AtPeer([&] {
    connection = network_.Connect(kDispatcherAddress, inbox);
    connection->Send("ClientSession");
    connection->Send("\xff\xff\xff");
  });
  ASSERT_TRUE(inbox->closed.has_value());
  EXPECT_TRUE(absl::IsInvalidArgument(*inbox->closed)) << *inbox->closed;
  EXPECT_THAT(inbox->messages, Not(IsEmpty()));  // the reason, as a message
}

TEST_F(DispatcherPortTest, AnUnknownMethodIsUnimplemented) {
  OpenPort();
  const auto inbox = std::make_shared<RawInbox>();
  std::unique_ptr<Connection> connection;
  AtPeer([&] {
    connection = network_.Connect(kDispatcherAddress, inbox);
    connection->Send("MakeTea");
  });
  ASSERT_TRUE(inbox->closed.has_value());
  EXPECT_TRUE(absl::IsUnimplemented(*inbox->closed)) << *inbox->closed;
}

TEST_F(DispatcherPortTest, TheStubEndsAStreamWithAnUnreadableMessage) {
  std::vector<std::shared_ptr<Connection>> accepted;
  const auto acceptor =
      network_.Listen(head_, kDispatcherAddress, [&](std::shared_ptr<Connection> connection) {
        connection->Send("\xff\xff\xff");
        accepted.push_back(std::move(connection));
        return std::make_shared<RawInbox>();
      });
  WorkerInbox inbox;
  std::unique_ptr<control::WorkerSession> session;
  AtPeer([&] { session = stub_->OpenWorkerSession(&inbox); });
  ASSERT_TRUE(inbox.closed.has_value());
  EXPECT_TRUE(absl::IsInvalidArgument(*inbox.closed)) << *inbox.closed;
  EXPECT_THAT(inbox.messages, IsEmpty());
}

}  // namespace
}  // namespace penstock::simulator
