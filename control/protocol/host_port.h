// SPDX-License-Identifier: Apache-2.0
// Joins a host and a port to an address: "host:port", with an IPv6 number in brackets,
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

}  // namespace penstock::control
