// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/host_port.h"

#include <arpa/inet.h>

#include "absl/strings/match.h"

namespace penstock::control {

bool HasPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) return false;
  return address.find(':') == colon || (address.front() == '[' && address[colon - 1] == ']');
}

std::string HostOf(const std::string& address) {
  return WithoutBrackets(HasPort(address) ? address.substr(0, address.rfind(':')) : address);
}

bool IsLoopback(const std::string& host) {
  const std::string bare = WithoutBrackets(host);
  in_addr four = {};
  if (inet_pton(AF_INET, bare.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six = {};
  if (inet_pton(AF_INET6, bare.c_str(), &six) == 1) return IN6_IS_ADDR_LOOPBACK(&six);
  return absl::EqualsIgnoreCase(bare, "localhost");
}

}  // namespace penstock::control
