// SPDX-License-Identifier: Apache-2.0
// Watches what passes through the dispatcher's port (port.h), for the coverage of a run.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace google::protobuf {
class Message;
}

namespace penstock::simulator {

// Called on fibers of the dispatcher, also for a dispatcher that was killed and ends.
class TrafficObserver {
 public:
  virtual ~TrafficObserver() = default;
  // A message of a stream: one that has arrived (ClientUp, WorkerUp), or one that is sent
  // (ClientDown, WorkerDown).
  virtual void OnMessage(const google::protobuf::Message& message) = 0;
  virtual void OnCall(std::string_view method) = 0;
  // A call or a stream ends with an error.
  virtual void OnRefused(std::string_view method, const absl::Status& status) = 0;
};

}  // namespace penstock::simulator
