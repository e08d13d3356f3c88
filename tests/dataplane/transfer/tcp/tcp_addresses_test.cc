// SPDX-License-Identifier: Apache-2.0
// Addresses of workers, and which connections stay on this machine.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "dataplane/transfer/tcp/socket.h"
#include "gtest/gtest.h"

namespace penstock::transfer::tcp {
namespace {

// Returns IsLocal() of a connection to that numeric address; nullopt if there
// is no route. Uses UDP, which connects without sending anything to the other
// host.
std::optional<bool> IsLocalTo(const std::string& host) {
  const absl::StatusOr<std::vector<Endpoint>> at = LookUp({host, 9}, /*numeric=*/true);
  if (!at.ok()) return std::nullopt;
  const Endpoint& endpoint = at->front();
  const Socket socket(::socket(endpoint.address.ss_family, SOCK_DGRAM, 0));
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&endpoint.address),
                endpoint.bytes) != 0) {
    return std::nullopt;
  }
  return IsLocal(socket);
}

// Returns the addresses of all interfaces except the loopback's.
std::vector<std::string> OwnAddresses() {
  std::vector<std::string> addresses;
  ifaddrs* all = nullptr;
  EXPECT_EQ(::getifaddrs(&all), 0);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text,
                sizeof text);
    addresses.emplace_back(text);
  }
  ::freeifaddrs(all);
  return addresses;
}

TEST(TcpAddresses, Ipv6StandsInBrackets) {
  EXPECT_EQ(ParseAddress("[fd00::1]:7000")->host, "fd00::1");
  EXPECT_EQ(ParseAddress("[fd00::1]:7000")->port, 7000);
  EXPECT_EQ(ParseAddress("node7:7000")->host, "node7");
  for (const char* bad : {"fd00::1:7000", "fd00::1", "[fd00::1]", "[]:7000x", "node7"}) {
    EXPECT_EQ(ParseAddress(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(TcpAddresses, TheLoopbackIsLocalInAnyForm) {
  for (const char* host : {"127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1", "::ffff:127.0.0.2"})
    EXPECT_TRUE(IsLocalTo(host).value_or(true)) << host;  // a machine may have no IPv6
  EXPECT_EQ(IsLocalTo("127.0.0.1"), true);
}

TEST(TcpAddresses, AddressesOfOwnInterfacesAreLocal) {
  const std::vector<std::string> own = OwnAddresses();
  if (own.empty()) GTEST_SKIP() << "this machine has the loopback only";
  for (const std::string& host : own) {
    EXPECT_EQ(IsLocalTo(host), true) << host;
    EXPECT_TRUE(IsLocalTo("::ffff:" + host).value_or(true)) << host;
  }
}

TEST(TcpAddresses, AddressesOfOtherHostsAreNotLocal) {
  if (!IsLocalTo("192.0.2.77").has_value()) GTEST_SKIP() << "no route leads off this machine";
  const std::vector<std::string> own = OwnAddresses();
  for (const std::string host : {"10.77.77.77", "172.16.77.77", "192.168.77.77", "192.0.2.77"}) {
    if (std::find(own.begin(), own.end(), host) != own.end()) continue;
    EXPECT_FALSE(IsLocalTo(host).value_or(false)) << host;
    EXPECT_FALSE(IsLocalTo("::ffff:" + host).value_or(false)) << host;
  }
}

}  // namespace
}  // namespace penstock::transfer::tcp
