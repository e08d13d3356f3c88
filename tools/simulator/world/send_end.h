// SPDX-License-Identifier: Apache-2.0
// The worker's end of a link over the simulated network: an accepted connection, whose first
// message is the client's hello.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/transfer/send_queue.h"
#include "dataplane/transfer/transport.h"
#include "tools/simulator/engine/scheduler.h"
#include "tools/simulator/world/event_gate.h"
#include "tools/simulator/world/network.h"

namespace penstock::simulator {

// Used by the fibers of one process. Only End() waits.
class SendEnd : public ConnectionEvents, public std::enable_shared_from_this<SendEnd> {
 public:
  // The object that accepted the connection. Called inside the link's events.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual absl::StatusOr<std::shared_ptr<transfer::SendEvents>> Accept(
        const transfer::Hello& hello, std::shared_ptr<transfer::SendLink> link) = 0;
    virtual void OnOver(SendEnd& end) = 0;  // no event follows
  };

  // `process`: the worker's.
  SendEnd(Scheduler& scheduler, std::shared_ptr<Process> process, std::shared_ptr<Owner> owner,
          std::shared_ptr<Connection> connection);

  // Same as in SendLink.
  const transfer::Hello& hello() const { return hello_; }
  int64_t credits() const { return queue_.credits(); }
  absl::Status Send(transfer::Sent&& sent);
  void Flush();
  void Close(const absl::Status& reason);

  // Ends the link without waiting for the client. When it returns, the last event has returned.
  // REQUIRES: the caller is not inside an event of this link.
  void End(const absl::Status& reason);

 private:
  void OnMessage(std::string message) override;
  void OnClosed(const absl::Status& reason) override;

  // Inside the gate:
  absl::Status Handle(std::string_view message);
  absl::Status Handle(transfer::Hello hello);
  absl::Status Handle(const transfer::Update& update);
  void StopReading(const absl::Status& reason);
  void EndInside(const absl::Status& reason);

  void Write();  // all that may be sent now
  void FlushLater();
  void EndLater();

  Scheduler& scheduler_;
  const std::shared_ptr<Process> process_;
  const std::shared_ptr<Owner> owner_;
  std::shared_ptr<Connection> connection_;  // until the link is over
  EventGate gate_;                          // around events
  transfer::SendQueue queue_;
  transfer::Hello hello_;  // constant once accepted
  std::shared_ptr<transfer::SendEvents> events_;
  bool hello_received_ = false;
  bool draining_ = false;   // messages that still arrive are dropped
  bool flush_due_ = false;  // a timer will send the open frame
  bool end_due_ = false;    // a timer will end the link
};

}  // namespace penstock::simulator
