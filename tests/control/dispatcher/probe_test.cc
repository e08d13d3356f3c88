// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/probe.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

// A port of the loopback with a listener until Leave().
class Port {
 public:
  explicit Port(int family) : fd_(socket(family, SOCK_STREAM, 0)) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_addr = in6addr_loopback;
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = family == AF_INET6 ? sizeof six : sizeof four;
    auto* at =
        family == AF_INET6 ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
    there_ = bind(fd_, at, size) == 0 && listen(fd_, 1) == 0;
    getsockname(fd_, at, &size);
    number_ = ntohs(family == AF_INET6 ? six.sin6_port : four.sin_port);
  }
  ~Port() { Leave(); }
  void Leave() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  bool there() const { return there_; }
  std::string Of(const std::string& host) const { return absl::StrCat(host, ":", number_); }

 private:
  int fd_;
  bool there_ = false;
  int number_ = 0;
};

TEST(PortRefuses, KnowsNumbersOfBothFamilies) {
  Port four(AF_INET);
  ASSERT_TRUE(four.there());
  EXPECT_FALSE(PortRefuses(four.Of("127.0.0.1")));
  four.Leave();
  EXPECT_TRUE(PortRefuses(four.Of("127.0.0.1")));
  Port six(AF_INET6);
  if (!six.there()) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_FALSE(PortRefuses(six.Of("[::1]")));
  six.Leave();
  EXPECT_TRUE(PortRefuses(six.Of("[::1]")));
}

// The name has addresses of both families; a machine may support only one.
TEST(PortRefuses, KnowsNames) {
  Port port(AF_INET);
  ASSERT_TRUE(port.there());
  EXPECT_FALSE(PortRefuses(port.Of("localhost")));
  port.Leave();
  EXPECT_TRUE(PortRefuses(port.Of("localhost")));
}

TEST(PortRefuses, IsFalseForInvalidAddresses) {
  for (const char* address : {"", ":", ":5", "localhost", "localhost:", "[::1]", "[]:5"})
    EXPECT_FALSE(PortRefuses(address)) << address;
}

}  // namespace
}  // namespace penstock::control
