// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/service/etcd_host.h"

#include <memory>

#include "control/sync/clock.h"
#include "include/status_macros.h"

namespace penstock::simulator {
namespace {

constexpr absl::Duration kLeaseCheck = absl::Milliseconds(500);  // as etcd does

}  // namespace

absl::Status EtcdHost::Main(Life& life) {
  if (!life.alive()) return absl::OkStatus();  // killed before it began
  state_.RenewLeases(BootTime());
  ASSIGN_OR_RETURN(const std::unique_ptr<EtcdPort> port,
                   EtcdPort::Open(world().network, life.process(), state_));
  while (!life.AwaitEnd(kLeaseCheck)) port->EndLeases();
  return absl::OkStatus();
}

}  // namespace penstock::simulator
