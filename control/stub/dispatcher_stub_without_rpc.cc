// SPDX-License-Identifier: Apache-2.0
// For builds with PENSTOCK_RPC=OFF. Tests have stubs of their own, or link tests/loopback in place
// of this file.
#include "control/stub/dispatcher_stub.h"

namespace penstock::control {

absl::StatusOr<std::unique_ptr<DispatcherStub>> DispatcherStub::Make(std::string_view /*service*/,
                                                                     const TlsConfig& /*tls*/) {
  return absl::UnimplementedError("this build has no gRPC (PENSTOCK_RPC=OFF)");
}

}  // namespace penstock::control
