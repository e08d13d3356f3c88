// SPDX-License-Identifier: Apache-2.0
#include "control/policy/worker_list.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::control {
namespace {

struct HostPort {
  std::string host;
  std::string port;  // empty: no port
};

HostPort Parse(const std::string& address) {
  const size_t colon = address.rfind(':');
  const bool inside_host =
      colon == std::string::npos ||
      address.find_first_of("]/", colon) != std::string::npos;  // "[::1]", "dns://a"
  if (inside_host) return {address, ""};
  return {address.substr(0, colon), address.substr(colon + 1)};
}

bool IsAnyPort(const std::string& port) {
  return port.empty() || (port.size() > 2 && port.front() == '%' && port.back() == '%');
}

}  // namespace

absl::Status CheckWorkerAddresses(absl::Span<const std::string> list) {
  for (const std::string& entry : list) {
    if (Parse(entry).host.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("worker_addresses contains '", entry,
                       "', which names no host; use host, host:port or host:%port%"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> PlaceInList(absl::Span<const std::string> list, const std::string& address,
                                    const std::set<int64_t>& taken) {
  const HostPort worker = Parse(address);
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] == address) return static_cast<int64_t>(i);
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const HostPort entry = Parse(list[i]);
    const auto place = static_cast<int64_t>(i);
    if (entry.host == worker.host && IsAnyPort(entry.port) && taken.count(place) == 0) return place;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "Failed to assign an index for worker ", address, ". Configured workers list: [",
      absl::StrJoin(list, ", "),
      "]. The worker's address is not configured, or other workers are already running at the "
      "configured host. If your worker has restarted, make sure it runs at the same address and "
      "port."));
}

}  // namespace penstock::control
