// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/renewal.h"

#include "control/proto/control.pb.h"

namespace penstock::simulator {

bool RenewsLease(const google::protobuf::Message& message) {
  using control::wire::WorkerDown;
  return message.GetDescriptor() == WorkerDown::descriptor() &&
         static_cast<const WorkerDown&>(message).has_heartbeat();
}

}  // namespace penstock::simulator
