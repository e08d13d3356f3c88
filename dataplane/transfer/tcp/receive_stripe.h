// SPDX-License-Identifier: Apache-2.0
// A further connection of a link, at the client's end. The thread of a loop of its own reads
// elements from it into slots, ahead of their turn. The thread that reads the link's first
// connection takes each when it is its turn.
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
  // Of that link, of which `pool` and `receiver` are, until Close().
  struct Link {
    std::weak_ptr<ReceiveSocket> socket;
    Pool& pool;
    ElementReceiver& receiver;
    uint64_t max_element_bytes;
    std::string target;  // of its worker
  };
  ReceiveStripe(std::shared_ptr<Loop> loop, const Join& join, Link link);
  // Begins to connect; to be called once.
  void Start(const Endpoint& worker);

  // The next element of this connection, its block in the first `bytes`.
  struct Came {
    Loan loan;
    size_t bytes = 0;
  };
  // On the thread that serves the link. nullopt: it has not come; the link is called once it has.
  // An error: it never will, and why.
  absl::StatusOr<std::optional<Came>> Take();

  // Any thread. From here on it touches nothing of the link's.
  void Close();
  // Any thread, after Close(). The connection ends.
  void HangUp();

 private:
  void OnReady(uint32_t events) override;
  void OnDeadline() override {}

  // By whoever serves, inside the gate. What they give is why it is over.
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
  Gate gate_;  // around whatever is the link's
  std::atomic<bool> hangs_up_ = false;

  // Of whoever serves.
  Socket socket_;
  bool connected_ = false;
  bool joined_ = false;  // as an element shows
  Incoming incoming_;
  Loan loan_;  // where the body that comes goes

  Mutex mu_;
  Fifo<Came> came_ GUARDED_BY(mu_);
  absl::Status failure_ GUARDED_BY(mu_);
  bool awaited_ GUARDED_BY(mu_) = false;
};

}  // namespace penstock::transfer::tcp
