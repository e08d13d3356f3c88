// SPDX-License-Identifier: Apache-2.0
// The messages that an engine sends, and the slots that a lost peer may still read. Used on the
// engine's thread only.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/ucx/active_worker.h"
#include "dataplane/transfer/ucx/peers.h"

namespace penstock::transfer::ucx {

class Outbox {
 public:
  Outbox(ActiveWorker& active, Peers& peers) : active_(active), peers_(peers) {}

  // Sends the first message of a link. REQUIRES: the link is attached, as in all sends below.
  void Greet(Link& link, const Greeting& greeting, uint32_t greeting_flags);
  void Send(Link& link, std::string_view text);
  void Send(Link& link, MessageType type, absl::Span<const std::byte> block, Loan loan);
  // Tells the other end that this end closes the link because of an error.
  void SendBroken(Link& link);

  // Releases slots that no peer reads any more.
  void ReleaseHeld(Clock::time_point now);

  // At the engine's end. Keeps the memory of pending sends forever, because UCX did not end in
  // time.
  void Abandon();
  // Releases everything. Call it after the worker object has been destroyed.
  void Clear();

 private:
  struct Sending final : Work {
    explicit Sending(Outbox& its) : outbox(its) {}
    void OnDone(const absl::Status& status) override;

    Outbox& outbox;
    Worker::Peer peer = 0;
    std::array<char, sizeof(Head) + kMaxInlineText> head;
    size_t head_bytes = 0;
    std::string long_head;  // in place of `head`, followed by a block's head
    std::string text;       // text that does not fit after the head
    Loan loan;
    bool announced = false;
  };
  struct Held {
    Loan loan;
    Clock::time_point until;
  };

  Sending& NewSending(Link& link, uint32_t kind);
  void Post(Sending& sending, Worker::Message message);

  ActiveWorker& active_;
  Peers& peers_;
  std::vector<std::unique_ptr<Sending>> sendings_;
  std::vector<Sending*> idle_;
  std::vector<Held> held_;  // QUARANTINED: lost peers may still read these
};

}  // namespace penstock::transfer::ucx
