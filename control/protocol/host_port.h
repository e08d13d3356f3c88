// SPDX-License-Identifier: Apache-2.0
// Hosts and addresses as text. An address is "host:port", with an IPv6 number in brackets,
// "[fd00::1]:5050" (RFC 3986).
#pragma once

#include <string>

#include "absl/strings/str_cat.h"

namespace penstock::control {

// Removes the brackets of a host: returns "fd00::1" for "[fd00::1]", and any other host unchanged.
inline std::string WithoutBrackets(const std::string& host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return bracketed ? host.substr(1, host.size() - 2) : host;
}

// Returns the address. `host` may be with or without brackets.
inline std::string JoinHostPort(const std::string& host, const absl::AlphaNum& port) {
  const bool number = host.find(':') != std::string::npos && host.front() != '[';
  return number ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

// Returns whether the text ends with a port: ":" and at least one character after a host, which is
// in brackets if it contains colons itself.
bool HasPort(const std::string& address);

// Returns the host of an address, without brackets; the whole text if it has no port.
std::string HostOf(const std::string& address);

// Returns whether the host is this machine's loopback by its text: "localhost", 127.x.x.x or ::1.
// False for a name that would have to be looked up. `host` may be with or without brackets.
bool IsLoopback(const std::string& host);

}  // namespace penstock::control
