// SPDX-License-Identifier: Apache-2.0
// How a host and a port make an address: "host:port", an IPv6 number in brackets,
// "[fd00::1]:5050" (RFC 3986).
#pragma once

#include <string>

#include "absl/strings/str_cat.h"

namespace penstock::control {

// "fd00::1" of "[fd00::1]"; any other host as it is.
inline std::string WithoutBrackets(const std::string& host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return bracketed ? host.substr(1, host.size() - 2) : host;
}

// The address; `host` with brackets or without.
inline std::string JoinHostPort(const std::string& host, const absl::AlphaNum& port) {
  const bool number = host.find(':') != std::string::npos && host.front() != '[';
  return number ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

}  // namespace penstock::control
