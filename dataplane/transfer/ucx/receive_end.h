// SPDX-License-Identifier: Apache-2.0
// The client's end of a link. The engine fetches large elements into registered slots; small
// elements arrive inside their messages. Reports of received elements are sent together with
// credits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "control/sync/mutex.h"
#include "dataplane/transfer/element_receiver.h"
#include "dataplane/transfer/gate.h"
#include "dataplane/transfer/transport.h"
#include "dataplane/transfer/ucx/engine.h"

namespace penstock::transfer::ucx {

// The link's events run on the engine's thread.
class ReceiveEnd final : public Link {
 public:
  // Makes a link to the worker at `target`. Announced elements are received in the pool of
  // `resources`, or on a device if options.pool has places on that device.
  ReceiveEnd(std::shared_ptr<Engine> engine, Resources& resources, std::string target,
             DialOptions options, std::shared_ptr<ReceiveEvents> events);
  // Dials. Call once.
  void Start();

  // Returns false in a forked child, which must not call any method below.
  bool runs() const { return engine_->runs(); }
  // Same as in ReceiveLink.
  void Grant(Credits credits);
  void Recall();
  // After it returns, no event begins. Notifies the worker if the link is still open.
  void Close();

 private:
  absl::Status Admit(uint32_t kind, size_t bytes) override;
  absl::StatusOr<Loan> Room(size_t bytes) override;
  std::optional<DevicePlace> RoomOnDevice(size_t head_bytes, size_t body_bytes) override;
  void OnIncoming(Incoming incoming) override;
  void OnCall() override;
  void OnDeadline() override;
  void OnLost(const absl::Status& reason) override;

  // On the engine's thread, inside the gate. The optional status is the reason for the link's end.
  std::optional<absl::Status> Handle(Incoming& incoming);
  absl::Status Receive(Incoming& incoming);
  absl::Status HandleOpen(const Message& message);
  void NotifyEnd(const absl::Status& reason);

  // On the engine's thread:
  void Report();       // received elements, and credits
  void DrainClosed();  // for a link that the client has closed
  void End();
  bool closed();

  const std::shared_ptr<Engine> engine_;
  Resources& resources_;
  const std::string target_;
  const DialOptions options_;
  Pool& pool_;                   // for elements that are not announced
  GpuDirectPool* const device_;  // nullptr: all elements are received in host memory
  Gate gate_;                    // around events, and around use of the pools

  // Used by the engine's thread only.
  std::shared_ptr<ReceiveEvents> events_;  // until the last event
  ElementReceiver receiver_;
  bool dialled_ = false;
  bool open_ = false;
  bool over_ = false;
  std::string out_;  // bytes being sent

  Mutex mu_;
  bool closed_ GUARDED_BY(mu_) = false;  // by this client
  Update waiting_ GUARDED_BY(mu_);       // the next update to the worker
};

}  // namespace penstock::transfer::ucx
