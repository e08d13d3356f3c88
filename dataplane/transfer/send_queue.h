// SPDX-License-Identifier: Apache-2.0
// The worker's end of a link, as far as all protocols have it in common: the answer to the client's
// hello, the credits that it gave, what is to be sent to it, in order, and why the link is closed.
// Small elements are copied together into frames (docs/element.md), and their own slots are free
// again at once; larger ones and errors go as they are. Each is kept until it was received.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "dataplane/element/frame.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer {

// How long a frame that is not full waits for more elements, at least.
inline constexpr std::chrono::milliseconds kFrameFlushDelay(1);

// Not thread-safe.
class SendQueue {
 public:
  // Frames take slots of `frame_bytes` from `frames`, which outlives this.
  SendQueue(Pool& frames, size_t frame_bytes) : frames_(frames), frame_bytes_(frame_bytes) {}

  int64_t credits() const { return credits_; }
  // Against one credit. FailedPrecondition without one, Unavailable after Close(); it then stays
  // the caller's.
  absl::Status Send(Sent&& sent);
  // A frame that is not full waits for more elements; frame() changes with each frame.
  bool has_open_frame() const { return frame_.has_value(); }
  uint64_t frame() const { return opened_; }
  // It waits no longer.
  void Seal();
  // Nothing more is sent. The client is told why, after all that was sent; of several reasons the
  // first.
  void Close(const absl::Status& reason);
  bool closed() const { return closed_; }
  const absl::Status& reason() const { return reason_; }

  // --- What the client says ---

  // The answer to its hello; before it nothing is said.
  void Welcome();
  bool answered() const { return answered_; }
  // What the client said was wrong, or it is not let in: as Close(). In answer to its hello the
  // reason is this one, whatever Close() said.
  void Refuse(const absl::Status& reason);
  // InvalidArgument for more credits than can be counted.
  absl::Status Grant(int64_t count);
  // The `count` oldest elements and errors were received: appends them to `received`.
  // InvalidArgument if fewer were taken.
  absl::Status OnReceived(int64_t count, std::vector<Acknowledged>& received);
  // Takes the credits back; the answer comes behind what was sent.
  void Recall();
  // All of that. To be followed by NotifyUpdate(), without the lock around this.
  absl::Status Apply(const Update& update, std::vector<Acknowledged>& received);

  // --- What is said to it next ---

  struct OutgoingMessage {
    MessageType type = MessageType::kElement;  // or kFrame, kError, kWelcome, kRecalled, kClosed
    absl::Span<const std::byte> bytes;         // of the frame or the element's block
    Loan loan;                                 // keeps `bytes`
    std::optional<ErrorMessage> error;         // a copy, as what waits here moves; of kClosed why
    int64_t count = 0;                         // elements or errors in it; credits taken back
  };
  bool empty() const { return !answered_ || close_sent_ || (size() == 0 && !closed_); }
  // The message that the link is closed was taken; it is the last.
  bool close_sent() const { return close_sent_; }
  // Of messages, but for the last.
  size_t size() const { return entries_.size() - taken_ - (has_open_frame() ? 1 : 0); }
  // REQUIRES: not empty().
  OutgoingMessage Take();

  // All that was not received, in the order of sending. What comes from frames is shared.
  std::vector<Sent> TakeUnconfirmed();

 private:
  // One message: a frame, an element or an error, or an answer to what the client said.
  struct Entry {
    MessageType type = MessageType::kElement;
    Sent alone;  // unless a frame
    Loan frame;
    size_t bytes = 0;      // of the frame
    Spec spec;             // of all in the frame
    int64_t count = 1;     // elements or errors in it; 0 of an answer
    int64_t received = 0;  // of these
    int64_t recalled = 0;  // credits
  };

  // Copies it into the open frame, or into a new one; false if there is no room for one.
  bool Pack(const Element& element);
  void Unpack(const Entry& entry, std::vector<Sent>& sent);
  // Lets go of the oldest that were taken, as far as all in them was received.
  void DropReceived();

  Pool& frames_;
  const size_t frame_bytes_;
  int64_t credits_ = 0;
  bool answered_ = false;
  bool closed_ = false;
  bool close_sent_ = false;
  absl::Status reason_;
  Fifo<Entry> entries_;         // the last is the open frame, if there is one
  size_t taken_ = 0;            // of entries_, from the front
  Fifo<Acknowledged> members_;  // of all entries, but for what was received
  std::optional<FrameWriter> frame_;
  uint64_t opened_ = 0;  // frames so far
};

// The whole message; empty for an element and a frame, whose body stands alone.
std::string TextOf(const SendQueue::OutgoingMessage& next);

// The events of such an update; `received` is empty then.
void NotifyUpdate(const Update& update, std::vector<Acknowledged>& received, SendEvents& events);

}  // namespace penstock::transfer
