// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/world/network.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/sync/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/simulator/engine/scheduler.h"
#include "tools/simulator/engine/trace.h"

namespace penstock::simulator {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kAddress[] = "b:1";

// What one end of a connection gets.
class Inbox final : public ConnectionEvents {
 public:
  explicit Inbox(Scheduler& scheduler) : scheduler_(scheduler) {}
  void OnMessage(std::string message) override {
    EXPECT_FALSE(closed.has_value());
    EXPECT_FALSE(std::exchange(inside_, true));
    if (pause > absl::ZeroDuration()) Sleep(pause);
    messages.push_back(std::move(message));
    inside_ = false;
  }
  void OnClosed(const absl::Status& reason) override {
    EXPECT_FALSE(closed.has_value());
    EXPECT_FALSE(inside_);
    closed = reason;
    closed_at = scheduler_.now();
  }
  bool is_unavailable() const { return closed.has_value() && absl::IsUnavailable(*closed); }

  absl::Duration pause;  // of the event of each message
  std::vector<std::string> messages;
  std::optional<absl::Status> closed;
  absl::Time closed_at;

 private:
  Scheduler& scheduler_;
  bool inside_ = false;
};

struct End {
  std::shared_ptr<Connection> connection;
  std::shared_ptr<Inbox> inbox;
};

// A process on host "b" that listens, and a process on host "a" that connects.
class NetworkTest : public ::testing::Test {
 protected:
  NetworkTest() : scheduler_({.seed = 7}, trace_) { Listen(server_); }

  void Listen(const std::shared_ptr<Process>& process) {
    auto acceptor = network_.Listen(process, kAddress, [this](std::shared_ptr<Connection> its) {
      accepted_.push_back({std::move(its), std::make_shared<Inbox>(scheduler_)});
      accepted_.back().inbox->pause = pause_;
      return accepted_.back().inbox;
    });
    ASSERT_TRUE(acceptor.ok()) << acceptor.status();
    acceptor_ = *std::move(acceptor);
  }
  // Runs `what` on a fiber of the process that connects.
  void AtClient(Scheduler::Event what) {
    scheduler_.StartIn(client_, "client", std::move(what));
    RunFor(absl::ZeroDuration());
  }
  End Connect() {
    End end{nullptr, std::make_shared<Inbox>(scheduler_)};
    AtClient([&] { end.connection = network_.Connect(kAddress, end.inbox); });
    return end;
  }
  // Returns a connection that is accepted.
  End ConnectAndWait() {
    End end = Connect();
    RunFor(absl::Seconds(1));
    EXPECT_THAT(accepted_, Not(IsEmpty()));
    return end;
  }
  void RunFor(absl::Duration time) {
    const absl::Time until = scheduler_.now() + time;
    scheduler_.At(until, bystander_, [] {});  // the time passes even if nothing else happens
    const absl::Status ran = scheduler_.Run(until);
    EXPECT_TRUE(ran.ok()) << ran;
  }
  static void SendNumbers(Connection& connection, int count) {
    for (int i = 0; i < count; ++i) connection.Send(absl::StrCat(i));
  }
  static std::vector<std::string> Numbers(size_t count) {
    std::vector<std::string> numbers;
    for (size_t i = 0; i < count; ++i) numbers.push_back(absl::StrCat(i));
    return numbers;
  }

  Trace trace_;
  Scheduler scheduler_;
  Network network_{scheduler_};
  const std::shared_ptr<Process> client_ = scheduler_.NewProcess("a", "client");
  const std::shared_ptr<Process> server_ = scheduler_.NewProcess("b", "server");
  const std::shared_ptr<Process> bystander_ = scheduler_.NewProcess("c", "bystander");
  absl::Duration pause_;
  std::vector<End> accepted_;
  std::unique_ptr<Acceptor> acceptor_;
};

TEST_F(NetworkTest, KeepsTheOrderOfEachConnection) {
  network_.weather.slow = 0.1;
  const End one = Connect();
  SendNumbers(*one.connection, 200);  // before it is accepted
  RunFor(absl::Seconds(2));
  const End other = ConnectAndWait();
  ASSERT_THAT(accepted_, SizeIs(2));
  SendNumbers(*accepted_[0].connection, 200);
  SendNumbers(*other.connection, 100);
  RunFor(absl::Seconds(2));
  EXPECT_EQ(accepted_[0].inbox->messages, Numbers(200));
  EXPECT_EQ(one.inbox->messages, Numbers(200));
  EXPECT_EQ(accepted_[1].inbox->messages, Numbers(100));
  EXPECT_THAT(other.inbox->messages, IsEmpty());
}

TEST_F(NetworkTest, ConnectionsOvertakeEachOther) {
  std::vector<End> ends;
  for (int i = 0; i < 20; ++i) {
    ends.push_back(Connect());
    ends.back().connection->Send(absl::StrCat(i));
  }
  RunFor(absl::Seconds(1));
  ASSERT_THAT(accepted_, SizeIs(20));
  std::vector<std::string> order;
  for (const End& end : accepted_) order.push_back(end.inbox->messages.at(0));
  EXPECT_NE(order, Numbers(20));
}

TEST_F(NetworkTest, EventsOfOneEndRunOneAtATimeEvenIfTheyWait) {
  pause_ = absl::Milliseconds(300);
  const End end = Connect();
  SendNumbers(*end.connection, 10);
  end.connection->Close(absl::OkStatus());
  RunFor(absl::Seconds(1));
  ASSERT_THAT(accepted_, SizeIs(1));
  EXPECT_EQ(accepted_[0].inbox->closed, std::nullopt);
  RunFor(absl::Seconds(5));
  EXPECT_EQ(accepted_[0].inbox->messages, Numbers(10));
  EXPECT_EQ(accepted_[0].inbox->closed, absl::OkStatus());
}

TEST_F(NetworkTest, TheReasonOfACloseComesAfterTheMessages) {
  const End end = ConnectAndWait();
  SendNumbers(*accepted_[0].connection, 3);
  accepted_[0].connection->Close(absl::NotFoundError("gone"));
  accepted_[0].connection->Send("dropped");
  RunFor(absl::Seconds(1));
  EXPECT_EQ(end.inbox->messages, Numbers(3));
  EXPECT_EQ(end.inbox->closed, absl::NotFoundError("gone"));
  EXPECT_EQ(accepted_[0].inbox->closed, absl::OkStatus());
}

TEST_F(NetworkTest, StopWaitsForARunningEventAndNoneFollows) {
  pause_ = absl::Seconds(2);
  const End end = Connect();
  SendNumbers(*end.connection, 3);
  RunFor(absl::Seconds(1));
  ASSERT_THAT(accepted_, SizeIs(1));
  bool stopped = false;
  scheduler_.StartIn(server_, "stops", [&] {
    accepted_[0].connection->Stop();
    EXPECT_THAT(accepted_[0].inbox->messages, ElementsAre("0"));
    stopped = true;
  });
  RunFor(absl::Milliseconds(100));
  EXPECT_FALSE(stopped);
  RunFor(absl::Seconds(10));
  EXPECT_TRUE(stopped);
  EXPECT_THAT(accepted_[0].inbox->messages, ElementsAre("0"));
  EXPECT_EQ(accepted_[0].inbox->closed, std::nullopt);
}

TEST_F(NetworkTest, RefusesWhereNobodyListens) {
  EXPECT_TRUE(absl::IsAlreadyExists(network_.Listen(server_, kAddress, nullptr).status()));
  EXPECT_FALSE(network_.Refuses(kAddress));
  acceptor_ = nullptr;
  EXPECT_TRUE(network_.Refuses(kAddress));
  const End end = Connect();
  RunFor(absl::Milliseconds(10));
  EXPECT_TRUE(end.inbox->is_unavailable());
}

TEST_F(NetworkTest, ABreakLosesTheEndOfWhatIsInFlight) {
  size_t fewest = 100;
  size_t most = 0;
  for (int i = 0; i < 20; ++i) {
    const End end = ConnectAndWait();
    SendNumbers(*end.connection, 100);
    network_.Break("b", "a");
    const absl::Time broken = scheduler_.now();
    end.connection->Send("dropped");
    RunFor(absl::Seconds(1));
    const Inbox& got = *accepted_.back().inbox;
    EXPECT_EQ(got.messages, Numbers(got.messages.size()));
    EXPECT_TRUE(got.is_unavailable());
    EXPECT_TRUE(end.inbox->is_unavailable());
    EXPECT_NE(got.closed_at, end.inbox->closed_at);
    EXPECT_LE(std::max(got.closed_at, end.inbox->closed_at), broken + absl::Milliseconds(500));
    fewest = std::min(fewest, got.messages.size());
    most = std::max(most, got.messages.size());
  }
  EXPECT_LT(fewest, most);
}

TEST_F(NetworkTest, ABreakOfOtherHostsChangesNothing) {
  const End end = ConnectAndWait();
  network_.Break("a", "c");
  network_.Break("a", "a");
  SendNumbers(*end.connection, 3);
  RunFor(absl::Seconds(20));
  EXPECT_EQ(accepted_[0].inbox->messages, Numbers(3));
  EXPECT_EQ(end.inbox->closed, std::nullopt);
}

TEST_F(NetworkTest, AMessageThatIsLostInACutBreaksItsConnection) {
  const End end = ConnectAndWait();
  const End idle = ConnectAndWait();
  end.connection->Send("before");
  network_.Cut("a", "b", absl::Seconds(1));
  const absl::Time cut = scheduler_.now();
  end.connection->Send("lost");
  RunFor(absl::Seconds(1));
  end.connection->Send("after the cut");
  RunFor(absl::Seconds(15));
  EXPECT_THAT(accepted_[0].inbox->messages, ElementsAre("before"));
  EXPECT_TRUE(accepted_[0].inbox->is_unavailable());
  EXPECT_TRUE(end.inbox->is_unavailable());
  EXPECT_NE(accepted_[0].inbox->closed_at, end.inbox->closed_at);
  EXPECT_LE(std::max(accepted_[0].inbox->closed_at, end.inbox->closed_at), cut + absl::Seconds(15));
  idle.connection->Send("sent after the cut");
  RunFor(absl::Seconds(1));
  EXPECT_THAT(accepted_[1].inbox->messages, ElementsAre("sent after the cut"));
}

TEST_F(NetworkTest, ACutIsInOneDirection) {
  const End end = ConnectAndWait();
  network_.Cut("a", "b", absl::Hours(1));
  SendNumbers(*accepted_[0].connection, 3);
  RunFor(absl::Seconds(1));
  EXPECT_EQ(end.inbox->messages, Numbers(3));
}

TEST_F(NetworkTest, NoConnectionBeginsOverACut) {
  network_.Cut("b", "a", absl::Seconds(1));
  const absl::Time begin = scheduler_.now();
  const End end = Connect();
  SendNumbers(*end.connection, 3);
  RunFor(absl::Seconds(20));
  EXPECT_THAT(accepted_, IsEmpty());
  EXPECT_TRUE(end.inbox->is_unavailable());
  EXPECT_THAT(end.inbox->closed_at - begin, AllOf(Ge(absl::Seconds(9)), Le(absl::Seconds(11))));
}

TEST_F(NetworkTest, PeersOfAKilledProcessNoticeSoon) {
  const End end = ConnectAndWait();
  SendNumbers(*end.connection, 3);
  SendNumbers(*accepted_[0].connection, 3);
  server_->Kill();
  network_.OnKilled(*server_);
  const absl::Time killed = scheduler_.now();
  EXPECT_TRUE(network_.Refuses(kAddress));
  accepted_[0].connection->Send("from a ghost");
  RunFor(absl::Seconds(1));
  // Messages that were sent before may still arrive, in order.
  const std::vector<std::string> sent = {"0", "1", "2"};
  ASSERT_LE(end.inbox->messages.size(), sent.size());
  EXPECT_TRUE(std::equal(end.inbox->messages.begin(), end.inbox->messages.end(), sent.begin()));
  EXPECT_TRUE(end.inbox->is_unavailable());
  EXPECT_LE(end.inbox->closed_at, killed + absl::Milliseconds(50));
  EXPECT_THAT(accepted_[0].inbox->messages, IsEmpty());
  EXPECT_EQ(accepted_[0].inbox->closed, std::nullopt);
}

TEST_F(NetworkTest, AnotherProcessMayListenWhereOneWasKilled) {
  std::unique_ptr<Acceptor> of_ghost = std::move(acceptor_);
  server_->Kill();
  network_.OnKilled(*server_);
  Listen(scheduler_.NewProcess("b", "server"));
  of_ghost = nullptr;
  EXPECT_FALSE(network_.Refuses(kAddress));
  const End end = ConnectAndWait();
  SendNumbers(*end.connection, 3);
  RunFor(absl::Seconds(1));
  EXPECT_EQ(accepted_[0].inbox->messages, Numbers(3));
}

TEST_F(NetworkTest, AGhostReachesNobody) {
  client_->Kill();
  network_.OnKilled(*client_);
  const End end = Connect();
  SendNumbers(*end.connection, 3);
  RunFor(absl::Minutes(1));
  EXPECT_THAT(accepted_, IsEmpty());
  EXPECT_EQ(end.inbox->closed, std::nullopt);
}

TEST_F(NetworkTest, MessagesWaitWhileTheirProcessIsPaused) {
  const End end = ConnectAndWait();
  server_->Pause();
  for (int i = 0; i < 10; ++i) {
    end.connection->Send(absl::StrCat(i));
    RunFor(absl::Seconds(1));
  }
  EXPECT_THAT(accepted_[0].inbox->messages, IsEmpty());
  server_->Continue();
  scheduler_.Continued(*server_);
  RunFor(absl::ZeroDuration());
  EXPECT_EQ(accepted_[0].inbox->messages, Numbers(10));
}

// Sends between two hosts while connections break, and returns the hash of what happened.
uint64_t HashOfSeed(uint64_t seed) {
  Trace trace;
  Scheduler scheduler({.seed = seed}, trace);
  Network network(scheduler);
  const std::shared_ptr<Process> client = scheduler.NewProcess("a", "client");
  const std::shared_ptr<Process> server = scheduler.NewProcess("b", "server");
  std::vector<End> ends;
  const auto acceptor = network.Listen(server, kAddress, [&](std::shared_ptr<Connection> its) {
    for (int i = 0; i < 10; ++i) its->Send(absl::StrCat("answer ", i));
    ends.push_back({std::move(its), std::make_shared<Inbox>(scheduler)});
    return ends.back().inbox;
  });
  scheduler.StartIn(client, "client", [&] {
    for (int i = 0; i < 20; ++i) {
      End end{nullptr, std::make_shared<Inbox>(scheduler)};
      end.connection = network.Connect(kAddress, end.inbox);
      for (int j = 0; j < 10; ++j) end.connection->Send(absl::StrCat(i, " ", j));
      ends.push_back(std::move(end));
      Sleep(absl::Milliseconds(1));
      if (i % 5 == 0) network.Break("a", "b");
    }
  });
  EXPECT_TRUE(scheduler.Run(scheduler.now() + absl::Minutes(1)).ok());
  return trace.hash();
}

TEST(Network, OneSeedHasOneHash) {
  EXPECT_EQ(HashOfSeed(1), HashOfSeed(1));
  EXPECT_NE(HashOfSeed(1), HashOfSeed(2));
}

TEST_F(NetworkTest, AClientThatPingsLeavesAPausedProcess) {
  network_.pinged = {"b"};
  const End end = ConnectAndWait();
  end.connection->Send("before");
  server_->Pause();
  network_.OnPaused(*server_);
  RunFor(absl::Seconds(3));
  EXPECT_TRUE(end.inbox->is_unavailable());
  const End another = Connect();
  RunFor(absl::Seconds(1));
  EXPECT_TRUE(another.inbox->is_unavailable());
  server_->Continue();
  scheduler_.Continued(*server_);
  RunFor(absl::Seconds(1));
  EXPECT_THAT(accepted_.at(0).inbox->messages, ElementsAre("before"));
  EXPECT_TRUE(accepted_.at(0).inbox->is_unavailable());
}

TEST_F(NetworkTest, AClientThatPingsGoesOnAfterAShortPause) {
  network_.pinged = {"b"};
  const End end = ConnectAndWait();
  server_->Pause();
  network_.OnPaused(*server_);
  RunFor(absl::Seconds(1));
  server_->Continue();
  scheduler_.Continued(*server_);
  RunFor(absl::Seconds(10));
  EXPECT_FALSE(end.inbox->closed.has_value());
}

}  // namespace
}  // namespace penstock::simulator
