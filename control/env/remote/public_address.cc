// SPDX-License-Identifier: Apache-2.0
#include "control/env/remote/public_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace penstock::remote {
namespace {

// The addresses whose first `bits` bits are those of `first`.
struct Network {
  uint32_t first;
  int bits;
};

constexpr uint32_t Ip(uint32_t a, uint32_t b, uint32_t c = 0, uint32_t d = 0) {
  return a << 24 | b << 16 | c << 8 | d;
}

constexpr Network kNotPublic[] = {
    {Ip(0, 0), 8},               // this network
    {Ip(10, 0), 8},              // private
    {Ip(100, 64), 10},           // shared: carriers, and 100.100.100.200 of Alibaba
    {Ip(127, 0), 8},             // loopback
    {Ip(168, 63, 129, 16), 32},  // Azure's wire server
    {Ip(169, 254), 16},          // link-local
    {Ip(172, 16), 12},           // private
    {Ip(192, 0, 0), 24},         // protocol assignments, and 192.0.0.192 of Oracle
    {Ip(192, 0, 2), 24},         // documentation
    {Ip(192, 88, 99), 24},       // relays of 6to4
    {Ip(192, 168), 16},          // private
    {Ip(198, 18), 15},           // benchmarks
    {Ip(198, 51, 100), 24},      // documentation
    {Ip(203, 0, 113), 24},       // documentation
    {Ip(224, 0), 3},             // multicast, reserved, broadcast
};

bool IsPublic(uint32_t address) {
  return std::none_of(std::begin(kNotPublic), std::end(kNotPublic), [&](const Network& network) {
    return (address ^ network.first) >> (32 - network.bits) == 0;
  });
}

uint32_t Ipv4At(const uint8_t* bytes) {
  return Ip(bytes[0], bytes[1], bytes[2], bytes[3]);
}

bool IsPublic(const in6_addr& address) {
  const uint8_t* const bytes = address.s6_addr;
  constexpr uint8_t kNat64[12] = {0x00, 0x64, 0xff, 0x9b};
  if (IN6_IS_ADDR_V4MAPPED(&address) || std::memcmp(bytes, kNat64, sizeof kNat64) == 0)
    return IsPublic(Ipv4At(bytes + 12));
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return IsPublic(Ipv4At(bytes + 2));  // 6to4
  // 2001::/23 has Teredo and other special uses; 2001:db8::/32 is for documentation.
  if (bytes[0] == 0x20 && bytes[1] == 0x01 && bytes[2] < 2) return false;
  if (bytes[0] == 0x20 && bytes[1] == 0x01 && bytes[2] == 0x0d && bytes[3] == 0xb8) return false;
  return bytes[0] >> 5 == 1;  // 2000::/3, global unicast
}

}  // namespace

bool IsPublicAddress(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof v4);
    return IsPublic(ntohl(v4.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 v6;
  std::memcpy(&v6, &address, sizeof v6);
  return IsPublic(v6.sin6_addr);
}

bool IsPublicAddress(const char* text) {
  in_addr v4;
  in6_addr v6;
  if (inet_pton(AF_INET, text, &v4) == 1) return IsPublic(ntohl(v4.s_addr));
  return inet_pton(AF_INET6, text, &v6) == 1 && IsPublic(v6);
}

}  // namespace penstock::remote
