// SPDX-License-Identifier: Apache-2.0
// A further connection of a link, at the worker's end. It carries only elements, in the order in
// which they were given. A loop with its own thread writes them, in parallel with the link's first
// connection.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/tcp/loop.h"
#include "dataplane/transfer/tcp/message_writer.h"
#include "dataplane/transfer/tcp/socket.h"

namespace penstock::transfer::tcp {

class SendSocket;

class SendStripe final : public Loop::Member, public std::enable_shared_from_this<SendStripe> {
 public:
  // Makes a stripe of `link`, which breaks when the stripe breaks. `sums`: the flags of its
  // messages.
  SendStripe(std::shared_ptr<Loop> loop, Socket socket, uint8_t sums,
             std::weak_ptr<SendSocket> link);
  // Call once.
  absl::Status Start() { return loop_->Add(socket_, shared_from_this()); }

  // Any thread. Sends an element that is not encoded.
  void Send(QueuedMessage message);
  // Any thread. Ends the connection and drops the remaining elements.
  void Close();

 private:
  void OnReady(uint32_t events) override;
  void OnDeadline() override {}

  // On the serving thread:
  bool TakeGiven();
  void Write();
  void Break(const absl::Status& reason);

  const std::shared_ptr<Loop> loop_;
  const uint8_t sums_;
  const std::weak_ptr<SendSocket> link_;

  // Used by the serving thread only.
  Socket socket_;
  MessageWriter writer_;
  bool writable_ = true;
  bool broken_ = false;

  Mutex mu_;
  Fifo<QueuedMessage> given_ GUARDED_BY(mu_);
  bool closed_ GUARDED_BY(mu_) = false;
};

}  // namespace penstock::transfer::tcp
