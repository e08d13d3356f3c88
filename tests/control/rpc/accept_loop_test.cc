// SPDX-License-Identifier: Apache-2.0
// Where a server listens on hosts that lack an address family, or whose ports are in use; and how
// it accepts the connections of strangers.
#include "control/rpc/accept_loop.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "control/sync/clock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

// From now on, this thread gets no socket of IPv6, as with a kernel that has none. Returns whether
// this machine can do that.
bool LoseIpv6() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),  // little-endian
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {sizeof program / sizeof *program, program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 &&
         socket(AF_INET6, SOCK_STREAM, 0) < 0;
}

TEST(AcceptLoop, ListensOnAllAddressesOfAKernelWithoutIpv6) {
  bool lost = false;
  std::thread([&] {  // a filter of calls stays with its thread
    lost = LoseIpv6();
    if (!lost) return;
    const auto loop = AcceptLoop::Listen("0.0.0.0", 0, Port::kDispatcher);
    ASSERT_TRUE(loop.ok()) << loop.status();
    EXPECT_GT((*loop)->port(), 0);
  })
      .join();
  if (!lost) GTEST_SKIP() << "this machine cannot filter system calls";
}

// A port that is free at ::1 may be in use at 127.0.0.1.
TEST(AcceptLoop, AnyPortOfLocalhostIsFreeAtAllItsAddresses) {
  std::vector<int> taken;
  for (int i = 0; i < 800; ++i) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) break;
    taken.push_back(fd);
    ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  }
  for (int i = 0; i < 200; ++i) {
    const auto loop = AcceptLoop::Listen("localhost", 0, Port::kDispatcher);
    EXPECT_TRUE(loop.ok()) << loop.status();
  }
  for (int fd : taken) close(fd);
}

// The text with which gRPC names the client of a connection.
std::string PeerOf(int fd) {
  return absl::StrCat("ipv4:127.0.0.1:", ClientOf(fd).port);
}

// Connects to that port, and sends the beginning of HTTP/2. Returns the socket.
int Connect(int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<uint16_t>(port));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  EXPECT_EQ(send(fd, "PRI", 3, MSG_NOSIGNAL), 3);
  return fd;
}

TEST(AcceptLoop, AConnectionThatWaitsIsServedWhenAnotherClientProvesItself) {
  const auto loop = AcceptLoop::Listen("127.0.0.1", 0, Port::kDispatcher,
                                       {.places = 2, .per_place = absl::InfiniteDuration()});
  ASSERT_TRUE(loop.ok()) << loop.status();
  std::promise<int> taken[3];
  int count = 0;  // used by the loop's thread
  ASSERT_TRUE((*loop)->Start([&](int fd) { taken[count++].set_value(fd); }).ok());
  std::future<int> third = taken[2].get_future();
  std::vector<int> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(Connect((*loop)->port()));
  const int first = taken[0].get_future().get();
  const int second = taken[1].get_future().get();
  EXPECT_EQ(third.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  (*loop)->Proved(PeerOf(second));
  clients.insert(clients.end(), {first, second, third.get()});
  for (int fd : clients) close(fd);
}

// One connection is served, one waits, and each further one is closed when it is accepted.
TEST(AcceptLoop, AcceptsEvery50MsWhileConnectionsWait) {
  const auto loop =
      AcceptLoop::Listen("127.0.0.1", 0, Port::kDispatcher,
                         {.places = 1, .per_place = absl::InfiniteDuration(), .waiting = 1});
  ASSERT_TRUE(loop.ok()) << loop.status();
  std::vector<int> fds;
  ASSERT_TRUE((*loop)->Start([](int fd) { close(fd); }).ok());
  for (int i = 0; i < 2; ++i) fds.push_back(Connect((*loop)->port()));
  ConnectionPace& pace = *(*loop)->pace();
  absl::Time next;
  while ((next = pace.NextTake()) == absl::InfiniteFuture()) std::this_thread::yield();
  for (int i = 0; i < 5; ++i) {
    const absl::Time last = next;
    while ((next = pace.NextTake()) == last) std::this_thread::yield();  // until the turn is over
    EXPECT_GE(next, last + absl::Milliseconds(50));
    fds.push_back(Connect((*loop)->port()));
    pollfd closed = {fds.back(), POLLIN, 0};
    EXPECT_EQ(poll(&closed, 1, -1), 1);
    EXPECT_GE(BootTime(), next);
  }
  for (int fd : fds) close(fd);
}

TEST(AcceptLoop, ServesSomeOfAFloodWhileTheOthersAreQueued) {
  constexpr int kFlood = 300;
  std::vector<int> taken;  // the loop's, until `all`
  std::promise<int> first;
  std::promise<void> all;
  const auto loop = AcceptLoop::Listen("127.0.0.1", 0, Port::kDispatcher, {.places = kFlood});
  ASSERT_TRUE(loop.ok()) << loop.status();
  std::vector<int> fds;
  for (int i = 0; i < kFlood; ++i) fds.push_back(Connect((*loop)->port()));
  const auto take = [&](int fd) {
    if (taken.empty()) {  // accepted descriptors have the lowest free numbers
      const int lowest = dup(fd);
      first.set_value(lowest - fd);
      close(lowest);
    }
    taken.push_back(fd);
    if (taken.size() == kFlood) all.set_value();
  };
  ASSERT_TRUE((*loop)->Start(take).ok());
  EXPECT_LT(first.get_future().get(), kFlood);
  all.get_future().wait();
  fds.insert(fds.end(), taken.begin(), taken.end());
  for (int fd : fds) close(fd);
}

}  // namespace
}  // namespace penstock::control
