// SPDX-License-Identifier: Apache-2.0
// For builds with PENSTOCK_RPC=OFF. Tests have stubs of their own, or link tests/loopback in place
// of this file.
#include <utility>

#include "control/stub/dispatcher_stub.h"
#include "control/stub/scheme.h"
#include "control/stub/target.h"
#include "include/status_macros.h"

namespace penstock::control {

absl::StatusOr<std::unique_ptr<DispatcherStub>> DispatcherStub::Make(std::string_view service,
                                                                     const TlsConfig& /*tls*/) {
  ASSIGN_OR_RETURN(Target target, ParseTarget(service));
  if (const MakeStub make = FindScheme(target.protocol)) return make(std::move(target.addresses));
  return absl::UnimplementedError("this build has no gRPC (PENSTOCK_RPC=OFF)");
}

}  // namespace penstock::control
