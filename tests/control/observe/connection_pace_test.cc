// SPDX-License-Identifier: Apache-2.0
#include "control/observe/connection_pace.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/control/observe/count_refused.h"

namespace penstock {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

// A listening socket of loopback, and clients with addresses of loopback.
class ConnectionPaceTest : public testing::Test {
 protected:
  // `waiting`: how many connections may wait. `most_places`: of a source.
  explicit ConnectionPaceTest(size_t waiting = 3, size_t most_places = 3)
      : waiting_(waiting), most_places_(most_places) {
    at_.sin_family = AF_INET;
    at_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at_;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&at_), sizeof at_), 0);
    EXPECT_EQ(listen(listener_, 100), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&at_), &bytes), 0);
  }
  ~ConnectionPaceTest() override {
    close(listener_);
    for (int fd : clients_) close(fd);
    for (const ConnectionPace::Arrived& one : served_) close(one.fd);
  }

  // A client connects from 127.0.0.`host`, and sends a byte if it `speaks`. Returns its socket.
  int Connect(absl::Time now, int host = 1, bool speaks = true) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in from{};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(0x7F000000 + host);
    EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&from), sizeof from), 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&at_), sizeof at_), 0);
    if (speaks) {
      EXPECT_EQ(send(fd, "x", 1, 0), 1);
    }
    clients_.push_back(fd);
    pace_.Add(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), now);
    return fd;
  }
  // Returns how many connections are served at that time.
  size_t Served(absl::Time now) {
    const std::vector<ConnectionPace::Arrived> taken = pace_.Take(now);
    served_.insert(served_.end(), taken.begin(), taken.end());
    return taken.size();
  }
  // Returns whether the server has closed the connection.
  static bool IsClosed(int client) {
    char byte;
    return recv(client, &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
  }

  const size_t waiting_;
  const size_t most_places_;
  const int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at_{};
  std::vector<int> clients_;
  std::vector<ConnectionPace::Arrived> served_;
  const std::shared_ptr<CapturedEvents> events_ = CapturedEvents::Make();
  ConnectionPace pace_{Port::kTcp,
                       {.places = 3,
                        .most_places = most_places_,
                        .per_place = absl::Seconds(1),
                        .bytes_per_place = 100,
                        .most_delay = absl::Seconds(5),
                        .waiting = waiting_,
                        .sources = 4},
                       events_};
};

class ConnectionPaceOfManyTest : public ConnectionPaceTest {
 protected:
  ConnectionPaceOfManyTest() : ConnectionPaceTest(100) {}
};

TEST_F(ConnectionPaceTest, ServesStrangersAtItsPace) {
  for (int i = 0; i < 5; ++i) Connect(kStart);
  EXPECT_EQ(Served(kStart), 3u);
  EXPECT_LT(pace_.NextTake(), kStart + absl::Seconds(1));
  EXPECT_EQ(Served(kStart + absl::Seconds(0.9)), 0u);
  EXPECT_EQ(Served(kStart + absl::Seconds(1)), 1u);
  EXPECT_EQ(Served(kStart + absl::Seconds(2)), 1u);
  EXPECT_EQ(pace_.NextTake(), absl::InfiniteFuture());
}

TEST_F(ConnectionPaceTest, APlaceIsFreeAtOnceWhenItsClientProvesItself) {
  for (int i = 0; i < 100; ++i) {
    Connect(kStart);
    ASSERT_EQ(Served(kStart), 1u) << i;
    EXPECT_FALSE(pace_.Proved(served_.back().client));
  }
  for (int i = 0; i < 4; ++i) Connect(kStart);
  EXPECT_EQ(Served(kStart), 3u);
  EXPECT_TRUE(pace_.Proved(served_.back().client)) << "the fourth one waits";
  EXPECT_EQ(Served(kStart), 1u);
}

class GrowingConnectionPaceTest : public ConnectionPaceTest {
 protected:
  GrowingConnectionPaceTest() : ConnectionPaceTest(100, 8) {}
};

TEST_F(GrowingConnectionPaceTest, AClientThatProvesItselfGivesItsSourceAPlace) {
  for (int i = 0; i < 30; ++i) Connect(kStart);
  EXPECT_EQ(Served(kStart), 3u);
  EXPECT_TRUE(pace_.Proved(served_[0].client));
  EXPECT_EQ(Served(kStart), 2u);  // four places
  for (size_t i = 1; i < 5; ++i) EXPECT_TRUE(pace_.Proved(served_[i].client));
  EXPECT_EQ(Served(kStart), 8u);
  for (size_t i = 5; i < 13; ++i) EXPECT_TRUE(pace_.Proved(served_[i].client));
  EXPECT_EQ(Served(kStart), 8u) << "there are no more than eight places";
  Connect(kStart, 2);
  for (int i = 0; i < 3; ++i) Connect(kStart, 2);
  EXPECT_EQ(Served(kStart), 3u) << "another source has only its own";
}

TEST_F(GrowingConnectionPaceTest, AClientThatDoesNotTakesThemAway) {
  for (int i = 0; i < 10; ++i) Connect(kStart);
  EXPECT_EQ(Served(kStart), 3u);
  for (size_t i = 0; i < 3; ++i) pace_.Proved(served_[i].client);
  EXPECT_EQ(Served(kStart), 6u);
  EXPECT_EQ(Served(kStart + absl::Seconds(1)), 1u) << "the pace is that of any source";
  const absl::Time all_free = kStart + absl::Seconds(8);
  for (int i = 0; i < 5; ++i) Connect(all_free);
  EXPECT_EQ(Served(all_free), 3u);
}

TEST_F(ConnectionPaceTest, TheNewestOfThoseThatWaitIsServedFirst) {
  for (int i = 0; i < 4; ++i) Connect(kStart);
  EXPECT_EQ(Served(kStart), 3u);
  Connect(kStart);
  EXPECT_EQ(Served(kStart + absl::Seconds(1)), 1u);
  sockaddr_in of_client{};
  socklen_t bytes = sizeof of_client;
  getsockname(clients_.back(), reinterpret_cast<sockaddr*>(&of_client), &bytes);
  EXPECT_EQ(served_.back().client.port, ntohs(of_client.sin_port));
}

TEST_F(ConnectionPaceTest, AClientGivesOnlyItsOwnPlaceBack) {
  for (int i = 0; i < 5; ++i) Connect(kStart);
  EXPECT_EQ(Served(kStart), 3u);
  EXPECT_TRUE(pace_.Proved(served_[0].client));
  EXPECT_EQ(Served(kStart), 1u);
  EXPECT_FALSE(pace_.Proved(served_[0].client));
  EXPECT_EQ(Served(kStart), 0u);
}

TEST_F(ConnectionPaceTest, StrangersDoNotDelayClientsOfOtherAddresses) {
  for (int i = 0; i < 10; ++i) Connect(kStart);
  EXPECT_EQ(Served(kStart), 3u);
  Connect(kStart, 2);
  EXPECT_EQ(Served(kStart), 1u);
}

TEST_F(ConnectionPaceTest, ClosesTheNewestOfTooManyThatWait) {
  const int64_t many = RefusedSoFar("tcp", "too_many");
  for (int i = 0; i < 6; ++i) Connect(kStart);
  const int seventh = Connect(kStart);
  EXPECT_TRUE(IsClosed(seventh));
  EXPECT_FALSE(IsClosed(clients_[5]));
  EXPECT_EQ(RefusedSoFar("tcp", "too_many"), many + 1);
}

TEST_F(ConnectionPaceTest, ReportsARefusedSourceOnceASecond) {
  for (int i = 0; i < 6; ++i) Connect(kStart, 2);
  EXPECT_TRUE(events_->All().empty());
  for (int i = 0; i < 3; ++i) Connect(kStart, 2);
  ASSERT_EQ(events_->All().size(), 1u);
  EXPECT_EQ(events_->All()[0].name, "connections_refused");
  EXPECT_EQ(events_->All()[0].field("address"), "127.0.0.2");
  Connect(kStart + absl::Seconds(1), 2);
  EXPECT_EQ(events_->All().size(), 2u);
}

TEST_F(ConnectionPaceTest, ASourceWithFewThatWaitLosesNoneToASourceWithMany) {
  const int64_t many = RefusedSoFar("tcp", "too_many");
  for (int i = 0; i < 6; ++i) Connect(kStart, 1);
  for (int i = 0; i < 4; ++i) Connect(kStart, 2);
  EXPECT_TRUE(IsClosed(clients_[5]));
  EXPECT_FALSE(IsClosed(clients_[4]));
  EXPECT_FALSE(IsClosed(clients_.back()));
  EXPECT_EQ(RefusedSoFar("tcp", "too_many"), many + 1);
  Connect(kStart, 3);
  EXPECT_EQ(Served(kStart), 3u + 3u + 1u) << "another source has places of its own";
}

TEST_F(ConnectionPaceTest, ConnectionsThatWaitLeaveDescriptorsFree) {
  for (int i = 0; i < 3; ++i) Connect(kStart);
  EXPECT_EQ(Served(kStart), 3u);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest = dup(STDERR_FILENO);
  close(lowest);
  const rlimit fewer{static_cast<rlim_t>(lowest) + 3, before.rlim_max};  // two sockets, one spare
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &fewer), 0);
  const int fourth = Connect(kStart);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(IsClosed(fourth));
  EXPECT_FALSE(IsClosed(Connect(kStart)));
}

TEST_F(ConnectionPaceTest, ClientsThatAreGoneTakeNoPlace) {
  for (int i = 0; i < 3; ++i) Connect(kStart);
  EXPECT_EQ(Served(kStart), 3u);
  shutdown(Connect(kStart), SHUT_WR);
  Connect(kStart);
  EXPECT_EQ(Served(kStart + absl::Seconds(1)), 1u);
  EXPECT_EQ(served_.back().client.port, ClientOf(served_.back().fd).port);
  EXPECT_FALSE(IsClosed(clients_.back()));
}

TEST_F(ConnectionPaceTest, SilentClientsKeepNobodyWaitingAndAreClosed) {
  const int64_t late = RefusedSoFar("tcp", "too_late");
  for (int i = 0; i < 3; ++i) Connect(kStart);
  EXPECT_EQ(Served(kStart), 3u);
  const int silent = Connect(kStart, 1, /*speaks=*/false);
  Connect(kStart);
  EXPECT_EQ(Served(kStart + absl::Seconds(1)), 1u);
  EXPECT_EQ(Served(kStart + absl::Seconds(9)), 0u);
  EXPECT_FALSE(IsClosed(silent));
  EXPECT_EQ(Served(kStart + absl::Seconds(10)), 0u);
  EXPECT_TRUE(IsClosed(silent));
  EXPECT_EQ(RefusedSoFar("tcp", "too_late"), late + 1);
}

TEST_F(ConnectionPaceOfManyTest, AFreePlaceCostsALookAtTheNewestOnly) {
  for (int i = 0; i < 4; ++i) Connect(kStart);
  EXPECT_EQ(Served(kStart), 3u);
  for (int i = 0; i < 15; ++i) Connect(kStart, 1, /*speaks=*/false);
  EXPECT_TRUE(pace_.Proved(served_[0].client));
  EXPECT_EQ(Served(kStart), 1u) << "the fourth one";
  Connect(kStart);
  for (int i = 0; i < 16; ++i) Connect(kStart, 1, /*speaks=*/false);
  EXPECT_TRUE(pace_.Proved(served_[1].client));
  EXPECT_EQ(Served(kStart), 0u);
  EXPECT_EQ(Served(kStart + absl::Milliseconds(50)), 1u) << "a look at all that wait";
}

TEST_F(ConnectionPaceTest, WhoSendsMuchTakesThePlacesOfItsSource) {
  Connect(kStart);
  Connect(kStart, 2);
  EXPECT_EQ(Served(kStart), 2u);
  pace_.Sent(served_.front().client, 150, kStart);
  pace_.Sent(served_.front().client, 50, kStart);  // all three places are taken
  Connect(kStart);
  Connect(kStart, 2);
  EXPECT_EQ(Served(kStart), 1u) << "of the other source";
  EXPECT_EQ(Served(kStart + absl::Seconds(0.9)), 0u);
  EXPECT_EQ(Served(kStart + absl::Seconds(1)), 1u);
  EXPECT_EQ(served_.back().client.source(), served_.front().client.source());
}

TEST_F(ConnectionPaceTest, WhoProvesItselfGivesBackAllItsPlaces) {
  Connect(kStart);
  EXPECT_EQ(Served(kStart), 1u);
  pace_.Sent(served_.front().client, 200, kStart);
  Connect(kStart);
  EXPECT_EQ(Served(kStart), 0u);
  EXPECT_TRUE(pace_.Proved(served_.front().client));
  EXPECT_EQ(Served(kStart), 1u);
}

TEST_F(ConnectionPaceTest, WhoSendsTooMuchWaitsForABoundedTime) {
  Connect(kStart);
  EXPECT_EQ(Served(kStart), 1u);
  pace_.Sent(served_.front().client, 500, kStart);  // two places, and three more seconds
  Connect(kStart);
  EXPECT_EQ(Served(kStart + absl::Seconds(3.9)), 0u);
  EXPECT_EQ(Served(kStart + absl::Seconds(4)), 1u);
  pace_.Sent(served_.front().client, 1'000'000, kStart + absl::Seconds(4));
  Connect(kStart + absl::Seconds(4));
  EXPECT_EQ(Served(kStart + absl::Seconds(8.9)), 0u);
  EXPECT_EQ(Served(kStart + absl::Seconds(9)), 1u);
}

TEST(ClientAddress, OfAUnixSocketIsTheProcess) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  EXPECT_EQ(ClientOf(ends[0]).source(), "the process with id " + std::to_string(getpid()));
  for (int fd : ends) close(fd);
}

TEST_F(ConnectionPaceTest, SourcesAboveTheLimitShareTheirPlaces) {
  for (int host = 1; host <= 4; ++host) Connect(kStart, host);
  for (int host = 5; host <= 8; ++host) Connect(kStart, host);
  EXPECT_EQ(Served(kStart), 4u + 3u);
  EXPECT_TRUE(pace_.Proved(served_.back().client));
  EXPECT_EQ(Served(kStart), 1u);
  Connect(kStart + absl::Seconds(10), 9);  // the first sources are forgotten by then
  EXPECT_EQ(Served(kStart + absl::Seconds(10)), 1u);
}

TEST_F(ConnectionPaceTest, ReadsTheAddressesOfGrpc) {
  Connect(kStart);
  ASSERT_EQ(Served(kStart), 1u);
  const ClientAddress client = served_[0].client;
  const std::string port = std::to_string(client.port);
  EXPECT_EQ(ClientFromGrpc("ipv4:127.0.0.1:" + port).source(), client.source());
  EXPECT_EQ(ClientFromGrpc("ipv4:127.0.0.1:" + port).port, client.port);
  EXPECT_EQ(ClientFromGrpc("ipv6:[::ffff:127.0.0.1]:" + port).source(), client.source());
  const ClientAddress v6 = ClientFromGrpc("ipv6:%5Bfe80::1%25eth0%5D:7");
  EXPECT_EQ(v6.source(), ClientFromGrpc("ipv6:[fe80::2]:8").source()) << "they may be of one host";
  EXPECT_NE(v6.source(), ClientFromGrpc("ipv6:[fe81::1]:7").source());
  EXPECT_EQ(v6.port, 7);
  EXPECT_EQ(ClientFromGrpc("unix:").source(), "");
}

}  // namespace
}  // namespace penstock
