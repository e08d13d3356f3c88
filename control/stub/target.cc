// SPDX-License-Identifier: Apache-2.0
#include "control/stub/target.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "control/protocol/host_port.h"
#include "control/stub/scheme.h"

namespace penstock::control {
namespace {

constexpr char kForms[] =
    "give \"[grpc://]host:port\", or several addresses after one protocol, "
    "\"grpc://a:5050,b:5050\"; an IPv6 number is in brackets, \"[fd00::1]:5050\"";

// Returns what is wrong with one of several addresses; empty: nothing.
std::string MistakeIn(const std::string& address, const std::vector<std::string>& before) {
  if (address.empty()) return "has an empty address";
  if (address.find_first_of(" \t\r\n") != std::string::npos) return "contains white space";
  if (!HasPort(address)) return absl::StrCat("lacks a port in \"", address, "\"");
  if (std::find(before.begin(), before.end(), address) != before.end()) {
    return absl::StrCat("names ", address, " twice");
  }
  return "";
}

}  // namespace

absl::StatusOr<Target> ParseTarget(std::string_view text) {
  const std::string service(text);  // Debian's absl::StrCat takes no std::string_view
  if (service.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("`service` must not be empty; ", kForms));
  }
  Target target{.protocol = "grpc"};
  std::string addresses = service;
  if (size_t mark = service.find("://"); mark != std::string::npos) {
    target.protocol = service.substr(0, mark);
    addresses = service.substr(mark + 3);
  }
  if (absl::StrContains(addresses, "://")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "`service` \"", service, "\" is malformed: it has more than one \"://\"; ", kForms));
  }
  if (target.protocol != "grpc" && !target.tls() && FindScheme(target.protocol) == nullptr) {
    return absl::NotFoundError(absl::StrCat("\"", target.protocol, "\" in `service` \"", service,
                                            "\" is not a control protocol; known: grpc, grpcs"));
  }
  const std::vector<std::string> each = absl::StrSplit(addresses, ',');
  for (const std::string& address : each) {
    if (const std::string mistake = MistakeIn(address, target.addresses); !mistake.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("`service` \"", service, "\" ", mistake, "; ", kForms));
    }
    target.addresses.push_back(address);
  }
  return target;
}

}  // namespace penstock::control
