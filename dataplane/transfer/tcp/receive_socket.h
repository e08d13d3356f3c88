// SPDX-License-Identifier: Apache-2.0
// The client's end of a link. The loop reads each block straight into a slot. Grant() and Recall()
// write to the socket immediately. Large elements may arrive over further connections
// (receive_stripe.h); a message on this connection announces their turn.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/sync/mutex.h"
#include "dataplane/transfer/element_receiver.h"
#include "dataplane/transfer/gate.h"
#include "dataplane/transfer/tcp/connector.h"
#include "dataplane/transfer/tcp/incoming.h"
#include "dataplane/transfer/tcp/loop.h"
#include "dataplane/transfer/tcp/receive_stripes.h"
#include "dataplane/transfer/tcp/request_writer.h"
#include "dataplane/transfer/tcp/socket.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer::tcp {

// The maximum number of bytes that one connection may receive before other connections are served.
inline constexpr uint64_t kMaxReceiveBytesAtOnce = 4 << 20;

absl::Status AboveLimit(uint64_t bytes, uint64_t max_element_bytes);

// The socket's events run on the loop's serving thread.
class ReceiveSocket : public Loop::Member, public std::enable_shared_from_this<ReceiveSocket> {
 public:
  // Makes a link to the worker at `target`, served by the first of the loops. Each other loop
  // serves a further connection, if the worker offers them.
  ReceiveSocket(std::vector<std::shared_ptr<Loop>> loops, std::string target, DialOptions options,
                std::shared_ptr<ReceiveEvents> events);
  // Starts the time limit for the worker's answer. Call once.
  void Start();
  // Connects to the first of `endpoints` that accepts. Call once. Any thread.
  void Connect(absl::StatusOr<std::vector<Endpoint>> endpoints);

  // Call this when the awaited element has arrived, or never will. Any thread.
  void GoOn() { loop_->Call(shared_from_this()); }

  // Same as in ReceiveLink.
  void Grant(Credits credits);
  void Recall();
  // After it returns, no event begins. Notifies the worker if the link is still open.
  void Close();

 private:
  void OnReady(uint32_t events) override;
  void OnDeadline() override;

  // On the serving thread, inside the gate. An optional status is the reason for the link's end.
  std::optional<absl::Status> Advance(uint32_t events);
  std::optional<absl::Status> ConnectOn(uint32_t events);
  std::optional<absl::Status> ReadOn();
  std::optional<absl::Status> HandleText();
  absl::Status MakeRoom();
  absl::Status Receive(Loan loan, MessageType type, size_t bytes);
  absl::Status OpenStripes(const StripeKey& key);
  // Receives the awaited element, if there is one; returns false if it has not arrived yet.
  absl::StatusOr<bool> ReceiveAwaited();
  void ReportSoon();
  void Open();
  void NotifyEnd(const absl::Status& reason);

  // On the serving thread:
  void DrainClosed(uint32_t events);  // for a link that the client has closed
  void End();
  bool closed();

  void Write() REQUIRES(mu_);

  const std::shared_ptr<Loop> loop_;
  const std::string target_;
  DialOptions options_;
  Pool& pool_;
  Gate gate_;  // around events, and around use of the pool

  // Used by the serving thread only.
  std::shared_ptr<ReceiveEvents> events_;  // until the last event
  Incoming incoming_;
  Loan loan_;  // for the body that is arriving
  ElementReceiver receiver_;
  bool hung_up_ = false;  // noticed late if it is another connection's turn
  bool open_ = false;
  bool over_ = false;
  bool report_due_ = false;  // the deadline is for a report

  Mutex mu_;
  // Changed by the serving thread with mu_ held; read by that thread without it.
  Socket socket_;
  bool connected_ = false;
  ReceiveStripes stripes_;
  Connector connector_ GUARDED_BY(mu_);
  RequestWriter writer_ GUARDED_BY(mu_);
};

}  // namespace penstock::transfer::tcp
