// SPDX-License-Identifier: Apache-2.0
#include "control/etcd/etcd_address.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace penstock::control {
namespace {

constexpr char kPlain[] = "etcd://";
constexpr char kOverTls[] = "etcds://";

absl::Status Malformed(const std::string& text, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is not the address of an etcd cluster: ", why,
                   "; give \"etcd://host:port,host:port,host:port/prefix\", or \"etcds://…\" over "
                   "TLS"));
}

}  // namespace

absl::StatusOr<EtcdAddress> ParseEtcdAddress(const std::string& text) {
  EtcdAddress address;
  absl::string_view rest = text;
  address.tls = absl::ConsumePrefix(&rest, kOverTls);
  if (!address.tls && !absl::ConsumePrefix(&rest, kPlain)) {
    return Malformed(text, "it does not begin with etcd:// or etcds://");
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits('/', 1));
  for (const absl::string_view endpoint : absl::StrSplit(parts.first, ',')) {
    if (!absl::StrContains(endpoint, ':') || absl::StrContains(endpoint, '@')) {
      return Malformed(text, absl::StrCat("\"", endpoint, "\" is not \"host:port\""));
    }
    address.endpoints.emplace_back(endpoint);
  }
  const absl::string_view prefix = absl::StripSuffix(parts.second, "/");
  if (prefix.empty()) return Malformed(text, "it has no prefix");
  address.prefix = absl::StrCat("/", prefix, "/");
  return address;
}

}  // namespace penstock::control
