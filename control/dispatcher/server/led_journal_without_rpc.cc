// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/led_journal.h"

namespace penstock::control {

absl::StatusOr<std::unique_ptr<Leadership>> WaitToLead(const DispatcherConfig& /*config*/,
                                                       Leadership::Lost /*lost*/) {
  return absl::UnimplementedError("this build has no gRPC, so it cannot reach etcd");
}

absl::StatusOr<std::unique_ptr<Journal>> OpenLedJournal(const DispatcherConfig& /*config*/,
                                                        uint64_t /*term*/) {
  return absl::UnimplementedError("this build has no gRPC, so it cannot reach etcd");
}

}  // namespace penstock::control
