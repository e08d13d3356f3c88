// SPDX-License-Identifier: Apache-2.0
// A further connection of a link, at the worker's end. Only elements go over it, in the order in
// which they were given, written by the thread of a loop of its own: beside what the link's first
// connection writes.
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
  // Of that link, which is broken when this is. `sums`: as the flags of a message.
  SendStripe(std::shared_ptr<Loop> loop, Socket socket, uint8_t sums,
             std::weak_ptr<SendSocket> link);
  // To be called once.
  absl::Status Start() { return loop_->Add(socket_, shared_from_this()); }

  // Any thread. An element that is not encoded.
  void Send(QueuedMessage message);
  // Any thread. The connection ends, with what is left.
  void Close();

 private:
  void OnReady(uint32_t events) override;
  void OnDeadline() override {}

  // By whoever serves:
  bool TakeGiven();
  void Write();
  void Break(const absl::Status& reason);

  const std::shared_ptr<Loop> loop_;
  const uint8_t sums_;
  const std::weak_ptr<SendSocket> link_;

  // Of whoever serves.
  Socket socket_;
  MessageWriter writer_;
  bool writable_ = true;
  bool broken_ = false;

  Mutex mu_;
  Fifo<QueuedMessage> given_ GUARDED_BY(mu_);
  bool closed_ GUARDED_BY(mu_) = false;
};

}  // namespace penstock::transfer::tcp
