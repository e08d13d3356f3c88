// SPDX-License-Identifier: Apache-2.0
// The client's end of a link over the simulated network.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "dataplane/transfer/element_receiver.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/transport.h"
#include "tools/simulator/engine/scheduler.h"
#include "tools/simulator/world/event_gate.h"
#include "tools/simulator/world/network.h"

namespace penstock::simulator {

// Used by the fibers of one process. Only Close() waits.
class ReceiveEnd : public ConnectionEvents, public std::enable_shared_from_this<ReceiveEnd> {
 public:
  ReceiveEnd(std::string target, transfer::DialOptions options,
             std::shared_ptr<transfer::ReceiveEvents> events);
  // Connects to the target as the calling fiber's process, and sends the hello. Call once.
  void Dial(Scheduler& scheduler, Network& network);

  // Same as in ReceiveLink.
  void Grant(transfer::Credits credits);
  void Recall();
  // After it returns, no event begins. Notifies the worker if the link is still open.
  void Close();

 private:
  // The reason for the link's end, which may be OK; nullopt: the link goes on.
  using Ended = std::optional<absl::Status>;

  void OnMessage(std::string message) override;
  void OnClosed(const absl::Status& reason) override;
  void OnTimeout();

  // Runs the event inside the gate, unless the link is over, and the last event if this one ends
  // the link.
  void Run(absl::FunctionRef<Ended()> event);
  Ended Handle(std::string_view message);
  Ended HandleText(std::string_view message);
  absl::Status Receive(transfer::MessageType type, std::string_view body);
  void SendUpdate();
  void HangUp();

  const std::string target_;
  transfer::DialOptions options_;
  Pool& pool_;
  std::shared_ptr<transfer::ReceiveEvents> events_;  // until the last event
  std::unique_ptr<Connection> connection_;           // until the link is over
  EventGate gate_;                                   // around events, and around use of the pool
  transfer::ElementReceiver receiver_;
  transfer::Update waiting_;  // the next update to the worker
  bool in_event_ = false;     // waiting_ is sent when the event has returned
  bool open_ = false;
};

}  // namespace penstock::simulator
