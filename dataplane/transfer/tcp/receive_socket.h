// SPDX-License-Identifier: Apache-2.0
// The client's end of a link. The loop reads each block straight into a slot;
// Grant() and Recall() write to the socket at once. Large elements may come over
// further connections (receive_stripe.h); where one has its turn, this one says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/sync/mutex.h"
#include "dataplane/transfer/element_receiver.h"
#include "dataplane/transfer/gate.h"
#include "dataplane/transfer/tcp/incoming.h"
#include "dataplane/transfer/tcp/loop.h"
#include "dataplane/transfer/tcp/receive_stripe.h"
#include "dataplane/transfer/tcp/socket.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer::tcp {

// What one connection may receive before others have their turn.
inline constexpr uint64_t kMaxReceiveBytesAtOnce = 4 << 20;

absl::Status AboveLimit(uint64_t bytes, uint64_t max_element_bytes);

// Its events come from whoever serves the loop.
class ReceiveSocket : public Loop::Member, public std::enable_shared_from_this<ReceiveSocket> {
 public:
  // A link to the worker at `target`, served by the first of the loops. Each other serves a further
  // connection, if the worker has such.
  ReceiveSocket(std::vector<std::shared_ptr<Loop>> loops, std::string target, DialOptions options,
                std::shared_ptr<ReceiveEvents> events);
  // From here on the time to answer runs. To be called once.
  void Start();
  // Where the worker may be reached; to be called once. Any thread.
  void Connect(absl::StatusOr<std::vector<Endpoint>> endpoints);

  // The awaited element has come, or never will. Any thread.
  void GoOn() { loop_->Call(shared_from_this()); }

  // As ReceiveLink's.
  void Grant(Credits credits);
  void Recall();
  // No event behind this; the worker is told, if it still listens.
  void Close();

 private:
  void OnReady(uint32_t events) override;
  void OnDeadline() override;

  // By whoever serves, inside the gate. What they give is why the link is over.
  std::optional<absl::Status> Advance(uint32_t events);
  std::optional<absl::Status> ConnectOn(uint32_t events);
  std::optional<absl::Status> ReadOn();
  std::optional<absl::Status> HandleText();
  absl::Status MakeRoom();
  absl::Status Receive(Loan loan, MessageType type, size_t bytes);
  absl::Status OpenStripes(const StripeKey& key);
  absl::Status Await(const Striped& striped);
  // Receives the element that is awaited, if there is one; false: it has not come yet.
  absl::StatusOr<bool> ReceiveAwaited();
  void ReportSoon();
  void Open();
  void NotifyEnd(const absl::Status& reason);

  // By whoever serves:
  void DrainClosed(uint32_t events);  // of a link that the client has closed
  void End();
  bool closed();

  void Write() REQUIRES(mu_);
  void AddWaiting() REQUIRES(mu_);

  const std::vector<std::shared_ptr<Loop>> loops_;
  const std::shared_ptr<Loop> loop_;  // the first
  const std::string target_;
  DialOptions options_;
  Pool& pool_;
  Gate gate_;  // around whatever touches the pool or is an event

  // Of whoever serves.
  std::shared_ptr<ReceiveEvents> events_;  // until the last
  Incoming incoming_;
  Loan loan_;  // where the body that comes goes
  ElementReceiver receiver_;
  ReceiveStripe* awaited_ = nullptr;  // whose turn it is, if not this connection's
  size_t tried_ = 0;                  // endpoints
  bool hung_up_ = false;              // which is not read while another connection has the turn
  bool connecting_ = false;
  bool open_ = false;
  bool over_ = false;
  bool shut_down_ = false;
  bool report_due_ = false;    // the deadline is for what was received
  absl::Status last_failure_;  // of connecting

  Mutex mu_;
  // Changed by the serving thread with mu_ held, and read by it without.
  Socket socket_;
  bool connected_ = false;
  std::vector<std::shared_ptr<ReceiveStripe>> stripes_;
  std::optional<absl::StatusOr<std::vector<Endpoint>>> endpoints_ GUARDED_BY(mu_);
  bool writable_ GUARDED_BY(mu_) = false;
  bool closed_ GUARDED_BY(mu_) = false;  // by this client
  bool goodbye_sent_ GUARDED_BY(mu_) = false;
  Update waiting_ GUARDED_BY(mu_);   // what the worker is to be told next
  std::string out_ GUARDED_BY(mu_);  // what is being written
  size_t out_at_ GUARDED_BY(mu_) = 0;
};

}  // namespace penstock::transfer::tcp
