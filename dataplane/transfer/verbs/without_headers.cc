// SPDX-License-Identifier: Apache-2.0
// Replaces all other sources if the headers of libibverbs were not found.
#include "dataplane/transfer/verbs/devices.h"
#include "dataplane/transfer/verbs/port_watch.h"

namespace penstock::transfer::verbs {
namespace {

absl::Status WithoutHeaders() {
  return absl::UnimplementedError(
      "this program was built without the libibverbs headers; install them (Debian: "
      "libibverbs-dev) and rebuild it");
}

}  // namespace

absl::StatusOr<std::vector<Device>> ListDevices() {
  return WithoutHeaders();
}

absl::StatusOr<std::unique_ptr<PortWatch>> PortWatch::Open(const std::string&) {
  return WithoutHeaders();
}

}  // namespace penstock::transfer::verbs
