// SPDX-License-Identifier: Apache-2.0
// The client's end of a link. The loop reads each block straight into a slot;
// whoever grants or recalls writes to the socket at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/sync/mutex.h"
#include "dataplane/transfer/gate.h"
#include "dataplane/transfer/landing.h"
#include "dataplane/transfer/tcp/incoming.h"
#include "dataplane/transfer/tcp/loop.h"
#include "dataplane/transfer/tcp/socket.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer::tcp {

// Its events come from whoever serves the loop.
class ReceiveSocket : public Loop::Member, public std::enable_shared_from_this<ReceiveSocket> {
 public:
  // A link to the worker at `target`.
  ReceiveSocket(std::shared_ptr<Loop> loop, std::string target, DialOptions options,
                std::shared_ptr<ReceiveEvents> events);
  // From here on the time to answer runs. To be called once.
  void Start();
  // Where the worker may be reached; to be called once. Any thread.
  void Connect(absl::StatusOr<std::vector<Endpoint>> endpoints);

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
  absl::Status Land();
  void ReportSoon();
  void Open();
  void TellEnd(const absl::Status& reason);

  // By whoever serves:
  void SeeOff(uint32_t events);  // of a link that the client has closed
  void End();
  bool closed();

  void Write() REQUIRES(mu_);
  void AddWaiting() REQUIRES(mu_);

  const std::shared_ptr<Loop> loop_;
  const std::string target_;
  DialOptions options_;
  Pool& pool_;
  Gate gate_;  // around whatever touches the pool or is an event

  // Of whoever serves.
  std::shared_ptr<ReceiveEvents> events_;  // until the last
  Incoming incoming_;
  Loan loan_;  // where the body that comes goes
  Landing landing_;
  size_t tried_ = 0;  // endpoints
  bool connecting_ = false;
  bool open_ = false;
  bool over_ = false;
  bool shut_down_ = false;
  bool report_due_ = false;    // the deadline is for what has landed
  absl::Status last_failure_;  // of connecting

  Mutex mu_;
  // Changed by the serving thread with mu_ held, and read by it without.
  Socket socket_;
  bool connected_ = false;
  std::optional<absl::StatusOr<std::vector<Endpoint>>> endpoints_ GUARDED_BY(mu_);
  bool writable_ GUARDED_BY(mu_) = false;
  bool closed_ GUARDED_BY(mu_) = false;  // by this client
  bool goodbye_said_ GUARDED_BY(mu_) = false;
  Update waiting_ GUARDED_BY(mu_);   // what the worker is to be told next
  std::string out_ GUARDED_BY(mu_);  // what is being written
  size_t out_at_ GUARDED_BY(mu_) = 0;
};

}  // namespace penstock::transfer::tcp
