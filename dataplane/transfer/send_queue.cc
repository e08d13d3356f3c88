// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/send_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/element/block.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock::transfer {

absl::Status SendQueue::Send(Sent&& sent) {
  if (closed_) return absl::UnavailableError("the link is closed");
  if (credits_ == 0) return absl::FailedPreconditionError("no credit on this link");
  --credits_;
  const size_t bytes = sent.element ? sent.element.block().size() : 0;
  members_.Push({sent.identity, static_cast<int64_t>(bytes)});
  if (sent.element && bytes < kFrameBelow && Pack(sent.element)) {
    sent.element = Element();
    return absl::OkStatus();
  }
  Seal();
  const MessageType type = sent.error.ok() ? MessageType::kElement : MessageType::kError;
  entries_.Push({.type = type, .alone = std::move(sent)});
  return absl::OkStatus();
}

bool SendQueue::Pack(const Element& element) {
  if (frame_.has_value()) {
    Entry& open = entries_[entries_.size() - 1];
    if (open.spec == element.spec() && frame_->Append(element.block())) {
      ++open.count;
      return true;
    }
    Seal();
  }
  if (sizeof(FramePrefix) + element.block().size() > frame_bytes_) return false;
  absl::StatusOr<Loan> slot = frames_.Lend(frame_bytes_);
  if (!slot.ok()) return false;
  frame_.emplace(slot->bytes().first(frame_bytes_));
  ++opened_;
  PENSTOCK_CHECK(frame_->Append(element.block()));
  entries_.Push({.type = MessageType::kFrame, .frame = *std::move(slot), .spec = element.spec()});
  return true;
}

void SendQueue::Seal() {
  if (!frame_.has_value()) return;
  entries_[entries_.size() - 1].bytes = frame_->Seal().size();
  frame_.reset();
}

void SendQueue::Close(const absl::Status& reason) {
  if (std::exchange(closed_, true)) return;
  reason_ = reason;
  Seal();
}

void SendQueue::Welcome() {
  answered_ = true;
  entries_.Push({.type = MessageType::kWelcome, .count = 0});
}

void SendQueue::Refuse(const absl::Status& reason) {
  if (!std::exchange(answered_, true)) closed_ = false;
  Close(reason);
}

absl::Status SendQueue::Grant(int64_t count) {
  if (credits_ > std::numeric_limits<int64_t>::max() - count)
    return absl::InvalidArgumentError("the client granted more credits than can be counted");
  credits_ += count;
  return absl::OkStatus();
}

absl::Status SendQueue::OnReceived(int64_t count, std::vector<Acknowledged>& received) {
  for (int64_t left = count; left > 0;) {
    if (taken_ == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the client confirmed ", count, " elements at once, more than were sent"));
    }
    Entry& oldest = entries_.front();
    const int64_t of_entry = std::min(left, oldest.count - oldest.received);
    oldest.received += of_entry;
    left -= of_entry;
    for (int64_t i = 0; i < of_entry; ++i) received.push_back(members_.Pop());
    DropReceived();
  }
  return absl::OkStatus();
}

void SendQueue::DropReceived() {
  while (taken_ > 0 && entries_.front().received == entries_.front().count) {
    entries_.Pop();
    --taken_;
  }
}

void SendQueue::Recall() {
  Seal();
  entries_.Push(
      {.type = MessageType::kRecalled, .count = 0, .recalled = std::exchange(credits_, 0)});
}

absl::Status SendQueue::Apply(const Update& update, std::vector<Acknowledged>& received) {
  RETURN_IF_ERROR(OnReceived(update.received, received));
  RETURN_IF_ERROR(Grant(update.granted));
  if (update.recall) Recall();
  return Grant(update.granted_after_recall);
}

SendQueue::OutgoingMessage SendQueue::Take() {
  PENSTOCK_CHECK(!empty());
  if (size() == 0) {
    close_sent_ = true;
    return {.type = MessageType::kClosed, .error = ErrorMessage{.error = reason_}};
  }
  const Entry& entry = entries_[taken_++];
  OutgoingMessage next{.type = entry.type, .count = entry.count};
  switch (entry.type) {
    case MessageType::kFrame:
      next.bytes = entry.frame.bytes().first(entry.bytes);
      next.loan = entry.frame.Share();
      break;
    case MessageType::kElement:
      next.bytes = entry.alone.element.block();
      next.loan = entry.alone.element.loan().Share();
      break;
    case MessageType::kError:
      next.error = ErrorMessage{entry.alone.identity, entry.alone.error};
      break;
    default:
      next.count = entry.recalled;
  }
  DropReceived();  // an answer has no elements, so it is dropped immediately
  return next;
}

std::vector<Sent> SendQueue::TakeUnconfirmed() {
  Seal();
  std::vector<Sent> sent;
  while (!entries_.empty()) {
    Entry entry = entries_.Pop();
    if (entry.type == MessageType::kFrame) {
      Unpack(entry, sent);
    } else if (entry.count > 0) {
      members_.Pop();
      sent.push_back(std::move(entry.alone));
    }
  }
  taken_ = 0;
  return sent;
}

void SendQueue::Unpack(const Entry& entry, std::vector<Sent>& sent) {
  std::byte* block = entry.frame.bytes().data() + sizeof(FramePrefix);
  for (int64_t i = 0; i < entry.count; ++i) {
    std::byte* const next = block + BlockBytes(block);
    if (i >= entry.received)
      sent.emplace_back(members_.Pop().identity, Element(entry.frame.Share(), block, entry.spec));
    block = next;
  }
}

std::string TextOf(const SendQueue::OutgoingMessage& next) {
  switch (next.type) {
    case MessageType::kWelcome:
      return Encode(Welcome());
    case MessageType::kRecalled:
      return Encode(Recalled{next.count});
    case MessageType::kError:
      return Encode(*next.error);
    case MessageType::kClosed:
      return Encode(Closed{next.error->error});
    default:
      return "";
  }
}

void NotifyUpdate(const Update& update, std::vector<Acknowledged>& received, SendEvents& events) {
  if (!received.empty()) events.OnReceived(received);
  received.clear();
  const int64_t granted = update.granted + update.granted_after_recall;
  if (granted > 0) events.OnCredits({granted});
}

}  // namespace penstock::transfer
