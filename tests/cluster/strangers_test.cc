// SPDX-License-Identifier: Apache-2.0
// Unauthenticated peers get nothing: at each port and socket of a dispatcher, and of workers'
// listeners.
#include "tests/cluster/strangers.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "control/stub/dispatcher_stub.h"
#include "dataplane/transfer/transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/server.h"
#include "tests/control/observe/count_refused.h"
#include "tests/dataplane/transfer/ends.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::Status Ask(const std::string& service, const TlsConfig& tls, absl::Duration timeout) {
  auto stub = control::DispatcherStub::Make(service, tls);
  if (!stub.ok()) return stub.status();
  return (*stub)->GetVersion({.timeout = timeout, .stop = {}}).status();
}

TEST(DispatcherPort, WithMutualTlsNeedsACertificateOfTheAuthority) {
  auto server = DispatchServer::Start({.tls = Mutual()});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string service = (*server)->target();
  ASSERT_THAT(service, testing::StartsWith("grpcs://localhost:"));
  EXPECT_TRUE(Ask(service, OurProcess(), kLongTimeout).ok());
  EXPECT_TRUE(absl::IsUnavailable(Ask(service, {.ca = Ours().ca()}, kShortTimeout)));
  EXPECT_TRUE(absl::IsUnavailable(Ask(service, Stranger(), kShortTimeout)));
  EXPECT_TRUE(
      absl::IsUnavailable(Ask(absl::StrCat("localhost:", (*server)->port()), {}, kShortTimeout)));
}

TEST(DispatcherPort, WithTlsProvesItsIdentity) {
  auto server = DispatchServer::Start({.tls = OurProcess()});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE(Ask((*server)->target(), {.ca = Ours().ca()}, kLongTimeout).ok());
  EXPECT_TRUE(absl::IsUnavailable(
      Ask((*server)->target(), {.ca = Authority("other").ca()}, kShortTimeout)));
}

TEST(DispatcherPages, NeedTheToken) {
  auto server = DispatchServer::Start({.metrics_port = 0, .metrics_token = "page-secret"});
  ASSERT_TRUE(server.ok()) << server.status();
  ExpectPagesAskForTheToken((*server)->metrics_port());
}

TEST(GrpcLink, WithMutualTlsNeedsACertificateOfTheAuthority) {
  transfer::Transport& grpc = **transfer::FindTransport("grpc");
  std::atomic<int> accepted = 0;
  auto listener = grpc.Listen({.tls = Mutual()}, [&](const transfer::Hello&, auto) {
    ++accepted;
    return absl::StatusOr<std::shared_ptr<transfer::SendEvents>>(
        absl::PermissionDeniedError("let in, and refused by token"));
  });
  ASSERT_TRUE(listener.ok()) << listener.status();
  const auto dial = [&](const std::string& address, const TlsConfig& tls) {
    auto client = std::make_shared<transfer::ClientEnd>();
    auto link =
        grpc.Dial(address, {.spec = Scalar(kInt64), .timeout = kLongTimeout, .tls = tls}, client);
    return link.ok() ? client->AwaitClosed() : link.status();
  };
  const std::string address = (*listener)->address();
  ASSERT_THAT(address, testing::StartsWith("grpcs://localhost:"));
  EXPECT_TRUE(absl::IsUnavailable(dial(address.substr(strlen("grpcs://")), {})));
  EXPECT_TRUE(absl::IsUnavailable(dial(address, {.ca = Ours().ca()})));
  EXPECT_TRUE(absl::IsUnavailable(dial(address, Stranger())));
  EXPECT_EQ(accepted, 0);
  EXPECT_TRUE(absl::IsPermissionDenied(dial(address, OurProcess())));
  EXPECT_EQ(accepted, 1);
}

TEST(Tls, BadFilesAreNamed) {
  const auto start = [](TlsConfig tls) {
    return std::string(DispatchServer::Start({.tls = std::move(tls)}).status().message());
  };
  TlsConfig tls = OurProcess();
  tls.key = "/nowhere/key.pem";
  EXPECT_THAT(start(tls), HasSubstr("tls_key: cannot open /nowhere/key.pem: "));
  tls.key = Stranger().key;
  EXPECT_THAT(start(tls), HasSubstr(Stranger().key));
  EXPECT_THAT(start(tls), HasSubstr("is not the key of the certificate"));
  tls.key = "";
  EXPECT_THAT(start(tls), HasSubstr("tls_certificate and tls_key belong together"));
  EXPECT_THAT(start({.certificate = OurProcess().key, .key = OurProcess().key}),
              HasSubstr("is not a certificate in PEM"));
  EXPECT_THAT(
      start({.certificate = OurProcess().certificate, .key = OurProcess().key, .mutual = true}),
      HasSubstr("tls_mutual needs tls_ca"));
}

// --- Ports without TLS -----------------------------------------------------------

class StrangersWords : public testing::TestWithParam<std::string> {};

// The conformance suite tests wrong tokens. These peers do not speak the protocol at all.
TEST_P(StrangersWords, OpenNothing) {
  transfer::Transport& transport = **transfer::FindTransport(GetParam());
  std::atomic<int> accepted = 0;
  std::shared_ptr<transfer::WorkerEnd> end;
  auto listener = transport.Listen({}, [&](const transfer::Hello&, auto link) {
    ++accepted;
    end = std::make_shared<transfer::WorkerEnd>(std::move(link));
    return absl::StatusOr<std::shared_ptr<transfer::SendEvents>>(end);
  });
  ASSERT_TRUE(listener.ok()) << listener.status();
  const std::string address = (*listener)->address();
  for (const std::string& words :
       {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"), std::string(5000, '\xff'),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11)}) {
    const std::string answer = Say(address, words);
    EXPECT_LT(answer.size(), 1000u);  // a reason, at most
  }
  EXPECT_EQ(accepted, 0);
  // A peer that belongs to the cluster is served all the same.
  auto client = std::make_shared<transfer::ClientEnd>();
  auto link = transport.Dial(address, {.spec = Scalar(kInt64)}, client);
  ASSERT_TRUE(link.ok()) << link.status();
  EXPECT_TRUE(client->AwaitOpen());
  EXPECT_EQ(accepted, 1);
}
INSTANTIATE_TEST_SUITE_P(Ports, StrangersWords, testing::Values("tcp", "grpc"));

// Returns the address of the socket at which a listener of `shm` waits.
std::pair<sockaddr_un, socklen_t> SocketOf(const transfer::Listener& listener) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  const std::string name = absl::StrCat("penstock-", listener.address());
  std::memcpy(at.sun_path + 1, name.data(), name.size());
  return {at, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

TEST(SharedMemory, DropsTheOldestOfTooManySilentClients) {
  const int64_t before = RefusedSoFar("shm", "too_many");
  std::shared_ptr<transfer::WorkerEnd> end;
  transfer::Transport& shm = **transfer::FindTransport("shm");
  auto listener = shm.Listen({}, [&](const transfer::Hello&, auto link) {
    end = std::make_shared<transfer::WorkerEnd>(std::move(link));
    return absl::StatusOr<std::shared_ptr<transfer::SendEvents>>(end);
  });
  ASSERT_TRUE(listener.ok()) << listener.status();
  const auto [at, size] = SocketOf(**listener);
  // Each process has places for 32.
  std::vector<pid_t> processes;
  for (int i = 0; i < 5; ++i) {
    processes.push_back(fork());
    if (processes.back() != 0) continue;
    for (int j = 0; j < 13; ++j) {  // only system calls: other threads do not exist in the child
      const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
      if (connect(fd, reinterpret_cast<const sockaddr*>(&at), size) != 0) _exit(1);
    }
    pause();
    _exit(0);
  }
  EXPECT_TRUE(Eventually([&] { return RefusedSoFar("shm", "too_many") == before + 1; }));
  auto client = std::make_shared<transfer::ClientEnd>();
  auto link = shm.Dial((*listener)->address(), {.spec = Scalar(kInt64)}, client);
  ASSERT_TRUE(link.ok()) << link.status();
  EXPECT_TRUE(client->AwaitOpen());
  for (const pid_t process : processes) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
}

TEST(SharedMemory, IsNotForAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  std::atomic<int> accepted = 0;
  auto listener = (*transfer::FindTransport("shm"))->Listen({}, [&](const transfer::Hello&, auto) {
    ++accepted;
    return absl::StatusOr<std::shared_ptr<transfer::SendEvents>>(
        absl::InternalError("a stranger came in"));
  });
  ASSERT_TRUE(listener.ok()) << listener.status();
  const auto [at, size] = SocketOf(**listener);
  const pid_t child = fork();
  if (child == 0) {  // only system calls: other threads do not exist in the child
    if (syscall(SYS_setresuid, 65534, 65534, 65534) != 0) _exit(1);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&at), size) != 0) _exit(2);
    char byte;
    // The listener closes without a message, whatever the peer has sent.
    _exit(recv(fd, &byte, 1, 0) <= 0 ? 0 : 3);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(accepted, 0);
}

}  // namespace
}  // namespace penstock
