// SPDX-License-Identifier: Apache-2.0
#include "control/rpc/connection_watch.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/control/observe/count_refused.h"

namespace penstock::control {
namespace {

constexpr int kPromptMs = 20'000;  // a closed connection is seen well within this time
constexpr int kLongMs = 500;       // long enough to see that a connection stays open

class ConnectionWatchTest : public testing::Test {
 protected:
  void Start(const std::string& host, ConnectionLimits limits) {
    watch_ = ConnectionWatch::Start(Port::kGrpc, limits).value();
    loop_ = AcceptLoop::Listen(host, 0, Port::kGrpc).value();
    const auto keep = [this](int fd) {
      accepted_.push_back(fd);
      ++num_accepted_;
      num_accepted_.notify_one();
    };
    ASSERT_TRUE(loop_->Start(watch_->Watching(loop_->pace(), keep)).ok());
  }
  ~ConnectionWatchTest() override {
    loop_.reset();
    watch_.reset();
    for (const int fd : accepted_) close(fd);
  }

  void WaitUntilAccepted(size_t connections) {
    for (size_t now; (now = num_accepted_) < connections;) num_accepted_.wait(now);
  }

  // A client over IPv4, whose address is 127.0.0.`host`.
  class Client {
   public:
    explicit Client(int port, int host = 1) {
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_addr.s_addr = htonl(0x7F000000 + host);
      EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
      at.sin_port = htons(static_cast<uint16_t>(port));
      at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    }
    ~Client() { close(fd_); }
    void Send(size_t bytes) {
      const std::string data(bytes, 'x');
      EXPECT_EQ(write(fd_, data.data(), data.size()), static_cast<ssize_t>(data.size()));
    }
    // Returns whether the server closes the connection within that time.
    bool IsClosed(int within_ms) {
      pollfd closed = {fd_, POLLIN, 0};
      return poll(&closed, 1, within_ms) == 1;
    }
    // gRPC's name of this client.
    std::string peer() const {
      sockaddr_in at{};
      socklen_t bytes = sizeof at;
      getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &bytes);
      return absl::StrCat("ipv4:127.0.0.1:", ntohs(at.sin_port));
    }

   private:
    const int fd_ = socket(AF_INET, SOCK_STREAM, 0);
  };

  std::unique_ptr<ConnectionWatch> watch_;
  std::unique_ptr<AcceptLoop> loop_;
  std::vector<int> accepted_;  // added to by the loop's thread
  std::atomic<size_t> num_accepted_{0};
};

TEST_F(ConnectionWatchTest, ClosesTheConnectionOfOneWhoSendsTooMuch) {
  Start("127.0.0.1", {.bytes = 1000, .time = absl::Hours(1)});
  const int64_t long_ones = RefusedSoFar("grpc", "too_long");
  Client much(loop_->port()), little(loop_->port());
  much.Send(1001);
  little.Send(1000);
  EXPECT_TRUE(much.IsClosed(kPromptMs));
  EXPECT_FALSE(little.IsClosed(kLongMs));
  EXPECT_EQ(RefusedSoFar("grpc", "too_long"), long_ones + 1);
}

TEST_F(ConnectionWatchTest, ClosesTheConnectionOfOneWhoTakesTooLong) {
  Start("127.0.0.1", {.bytes = 1000, .time = absl::Milliseconds(200)});
  const int64_t late = RefusedSoFar("grpc", "too_late");
  Client silent(loop_->port());
  EXPECT_TRUE(silent.IsClosed(kPromptMs));
  EXPECT_EQ(RefusedSoFar("grpc", "too_late"), late + 1);
}

// The port of all addresses has sockets of IPv6, also for clients over IPv4.
TEST_F(ConnectionWatchTest, AnAuthenticatedPeerHasNoLimits) {
  for (const char* host : {"127.0.0.1", "0.0.0.0"}) {
    const size_t before = num_accepted_;
    Start(host, {.bytes = 1000, .time = absl::Seconds(2)});
    Client known(loop_->port()), silent(loop_->port());
    WaitUntilAccepted(before + 2);
    watch_->Authenticated(known.peer());
    known.Send(5000);
    EXPECT_TRUE(silent.IsClosed(kPromptMs)) << host;
    EXPECT_FALSE(known.IsClosed(kLongMs)) << host;
    loop_.reset();
  }
}

TEST_F(ConnectionWatchTest, ClosesTheOldestOfTooManyConnectionsOfAnAddress) {
  Start("127.0.0.1", {.time = absl::Hours(1), .of_source = 2});
  const int64_t many = RefusedSoFar("grpc", "too_many");
  Client first(loop_->port());
  WaitUntilAccepted(1);
  watch_->Authenticated(first.peer());
  Client other(loop_->port(), 2), second(loop_->port()), third(loop_->port());
  WaitUntilAccepted(4);
  EXPECT_EQ(RefusedSoFar("grpc", "too_many"), many);
  Client fourth(loop_->port());
  EXPECT_TRUE(second.IsClosed(kPromptMs));
  EXPECT_FALSE(third.IsClosed(kLongMs));
  EXPECT_FALSE(fourth.IsClosed(0));
  EXPECT_FALSE(first.IsClosed(0)) << "it is authenticated";
  EXPECT_FALSE(other.IsClosed(0)) << "it has another address";
  EXPECT_EQ(RefusedSoFar("grpc", "too_many"), many + 1);
}

TEST_F(ConnectionWatchTest, AnAddressWithManyConnectionsMakesRoomForOthers) {
  Start("127.0.0.1", {.time = absl::Hours(1), .in_all = 3});
  Client few(loop_->port(), 2);
  WaitUntilAccepted(1);
  Client older(loop_->port()), newer(loop_->port());
  WaitUntilAccepted(3);
  Client newcomer(loop_->port(), 3);
  EXPECT_TRUE(older.IsClosed(kPromptMs));
  EXPECT_FALSE(newcomer.IsClosed(kLongMs));
  EXPECT_FALSE(few.IsClosed(0));
  EXPECT_FALSE(newer.IsClosed(0));
}

TEST_F(ConnectionWatchTest, ClosesThoseThatHaveSentMostIfAllHaveSentTooMuch) {
  Start("127.0.0.1", {.bytes = 1000, .time = absl::Hours(1), .bytes_in_all = 1500});
  const int64_t long_ones = RefusedSoFar("grpc", "too_long");
  Client little(loop_->port()), some(loop_->port()), much(loop_->port());
  little.Send(300);
  some.Send(500);
  much.Send(900);
  EXPECT_TRUE(much.IsClosed(kPromptMs));
  EXPECT_FALSE(some.IsClosed(kLongMs));
  EXPECT_FALSE(little.IsClosed(0));
  EXPECT_EQ(RefusedSoFar("grpc", "too_long"), long_ones + 1);
}

}  // namespace
}  // namespace penstock::control
