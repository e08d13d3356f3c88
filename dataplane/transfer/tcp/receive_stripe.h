// SPDX-License-Identifier: Apache-2.0
// A further connection of a link, at the client's end. A loop with its own thread reads elements
// from it into slots, ahead of their turn. The thread that reads the link's first connection takes
// each element in its turn.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/element_receiver.h"
#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/gate.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/tcp/incoming.h"
#include "dataplane/transfer/tcp/loop.h"
#include "dataplane/transfer/tcp/socket.h"

namespace penstock::transfer::tcp {

class ReceiveSocket;

class ReceiveStripe final : public Loop::Member,
                            public std::enable_shared_from_this<ReceiveStripe> {
 public:
  // The link of this connection. The link owns `pool` and `receiver`, which are used until Close().
  struct Link {
    std::weak_ptr<ReceiveSocket> socket;
    Pool& pool;
    ElementReceiver& receiver;
    uint64_t max_element_bytes;
    std::string target;  // the worker's address
  };
  ReceiveStripe(std::shared_ptr<Loop> loop, const Join& join, Link link);
  // Begins to connect. Call once.
  void Start(const Endpoint& worker);

  // The next element of this connection; its block is in the first `bytes`.
  struct Came {
    Loan loan;
    size_t bytes = 0;
  };
  // Call on the thread that serves the link. Returns nullopt if the element has not arrived yet;
  // the link is called once the element is there. Returns an error with the reason if the element
  // will never arrive.
  absl::StatusOr<std::optional<Came>> Take();

  // Any thread. After Close() returns, the stripe does not use the link.
  void Close();
  // Any thread, after Close(). Ends the connection.
  void HangUp();

 private:
  void OnReady(uint32_t events) override;
  void OnDeadline() override {}

  // On the serving thread, inside the gate. An error is the reason for the connection's end.
  absl::Status Advance(uint32_t events);
  absl::Status ReadOn();
  absl::Status MakeRoom();
  absl::Status Handle();
  void Fail(const absl::Status& reason);
  void NotifyNotJoined(const absl::Status& reason);
  void CallLink();

  const std::shared_ptr<Loop> loop_;
  const std::string join_;
  const Link link_;
  Gate gate_;  // around every use of the link's objects
  std::atomic<bool> hangs_up_ = false;

  // Used by the serving thread only.
  Socket socket_;
  bool connected_ = false;
  bool joined_ = false;  // an element has arrived
  Incoming incoming_;
  Loan loan_;  // for the body that is arriving

  Mutex mu_;
  Fifo<Came> came_ GUARDED_BY(mu_);
  absl::Status failure_ GUARDED_BY(mu_);
  bool awaited_ GUARDED_BY(mu_) = false;
};

}  // namespace penstock::transfer::tcp
