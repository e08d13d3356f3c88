// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/outbox.h"

#include <cstring>
#include <utility>

#include "dataplane/element/block.h"

namespace penstock::transfer::ucx {
namespace {

// A receiver gives up on an announced element after 60 s; until then it may read the element.
constexpr std::chrono::seconds kHoldTime(61);

}  // namespace

Outbox::Sending& Outbox::NewSending(Link& link, uint32_t kind) {
  if (idle_.empty()) {
    sendings_.push_back(std::make_unique<Sending>(*this));
    idle_.push_back(sendings_.back().get());
  }
  Sending& sending = *idle_.back();
  idle_.pop_back();
  const Head head{
      .kind = kind, .dialler = link.dialler_, .link = link.number_, .sequence = link.sent_++};
  std::memcpy(sending.head.data(), &head, sizeof head);
  sending.head_bytes = sizeof head;
  sending.peer = link.peer_;
  return sending;
}

void Outbox::Greet(Link& link, const Greeting& greeting, uint32_t greeting_flags) {
  Sending& sending = NewSending(link, Head::kGreeting);
  sending.text = Encode(greeting);
  if (greeting_flags != 0) {
    std::memcpy(sending.head.data() + sizeof(Head), &greeting_flags, sizeof greeting_flags);
    sending.head_bytes += sizeof greeting_flags;
  }
  Post(sending, {});
}

void Outbox::Send(Link& link, std::string_view text) {
  Sending& sending = NewSending(link, Head::kText);
  if (text.size() <= kMaxInlineText) {
    std::memcpy(sending.head.data() + sizeof(Head), text.data(), text.size());
    sending.head_bytes += text.size();
  } else {
    sending.text = text;
  }
  Post(sending, {});
}

void Outbox::Send(Link& link, MessageType type, absl::Span<const std::byte> block, Loan loan) {
  Worker::Message message;
  message.data = block;
  size_t head_bytes = 0;
  if (link.two_pieces_ && type == MessageType::kElement) {
    head_bytes = PrefixOf(block.data()).head_bytes;
    const bool fits = sizeof(Head) + head_bytes <= active_.worker->max_head_bytes();
    if (!fits || block.size() - head_bytes < kAnnounceFrom) head_bytes = 0;
  }
  Sending& sending =
      NewSending(link, head_bytes > 0 ? Head::kTwoPieces : static_cast<uint32_t>(type));
  if (head_bytes > 0) {
    sending.long_head.assign(sending.head.data(), sizeof(Head));
    sending.long_head.append(reinterpret_cast<const char*>(block.data()), head_bytes);
    message.data.remove_prefix(head_bytes);
  }
  sending.loan = std::move(loan);
  message.announce = block.size() >= kAnnounceFrom;
  if (message.announce) message.handle = active_.resources.memory->Find(message.data);
  Post(sending, message);
}

void Outbox::SendBroken(Link& link) {
  Post(NewSending(link, Head::kBroken), {});
}

void Outbox::Post(Sending& sending, Worker::Message message) {
  message.head = sending.long_head.empty()
                     ? std::string_view(sending.head.data(), sending.head_bytes)
                     : std::string_view(sending.long_head);
  if (!sending.text.empty()) {
    message.data = {reinterpret_cast<const std::byte*>(sending.text.data()), sending.text.size()};
  }
  sending.announced = message.announce;
  ++active_.under_way;
  if (!peers_.IsOpen(sending.peer)) {
    return sending.OnDone(absl::CancelledError("the peer is gone"));
  }
  const absl::StatusOr<bool> done = active_.worker->Send(sending.peer, message, sending);
  if (!done.ok() || *done) sending.OnDone(done.status());
}

void Outbox::Sending::OnDone(const absl::Status& status) {
  --outbox.active_.under_way;
  if (!status.ok()) {
    outbox.peers_.FailLater(peer, status);
    if (announced) {
      outbox.held_.push_back({std::move(loan), Clock::now() + kHoldTime});
      outbox.active_.LookBy(outbox.held_.back().until);
    }
  }
  loan = Loan();
  text.clear();
  long_head.clear();
  outbox.idle_.push_back(this);
}

void Outbox::ReleaseHeld(Clock::time_point now) {
  std::erase_if(held_, [&](const Held& held) { return held.until <= now; });
  for (const Held& held : held_) active_.LookBy(held.until);
}

void Outbox::Abandon() {
  for (std::unique_ptr<Sending>& sending : sendings_) sending.release();
}

void Outbox::Clear() {
  sendings_.clear();
  held_.clear();
}

}  // namespace penstock::transfer::ucx
