// SPDX-License-Identifier: Apache-2.0
#include "control/stub/target.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "control/stub/scheme.h"

namespace penstock::control {

absl::StatusOr<Target> ParseTarget(std::string_view text) {
  const std::string service(text);  // Debian's absl::StrCat takes no std::string_view
  if (service.empty()) {
    return absl::InvalidArgumentError("`service` must not be empty; give \"[grpc://]host:port\"");
  }
  Target target{.protocol = "grpc", .address = service};
  if (size_t mark = service.find("://"); mark != std::string::npos) {
    target.protocol = service.substr(0, mark);
    target.address = service.substr(mark + 3);
  }
  if (absl::StrContains(target.address, "://")) {
    return absl::InvalidArgumentError(
        absl::StrCat("`service` \"", service, "\" is malformed: it has more than one \"://\""));
  }
  if (target.protocol != "grpc" && !target.tls() && FindScheme(target.protocol) == nullptr) {
    return absl::NotFoundError(absl::StrCat("\"", target.protocol, "\" in `service` \"", service,
                                            "\" is not a control protocol; known: grpc, grpcs"));
  }
  if (target.address.empty() || target.address.find(':') == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("`service` \"", service, "\" lacks a port; give \"[grpc://]host:port\""));
  }
  return target;
}

}  // namespace penstock::control
