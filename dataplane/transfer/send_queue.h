// SPDX-License-Identifier: Apache-2.0
// The part of the worker's end of a link that all protocols share: the answer to the client's
// hello, the client's credits, the messages to send, in order, and the reason for the closing of
// the link. Small elements are copied together into frames (docs/element.md), which frees their own
// slots immediately; larger elements and errors are sent as they are. Elements and errors are kept
// until they have been received.
#pragma once

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
#include "dataplane/transfer/frame_flush_delay.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/transport.h"

#pragma GCC visibility push(default)
namespace penstock::transfer {

// Not thread-safe.
class SendQueue {
 public:
  // Frames take slots of `frame_bytes` from `frames`, which must outlive this object.
  SendQueue(Pool& frames, size_t frame_bytes) : frames_(frames), frame_bytes_(frame_bytes) {}

  int64_t credits() const { return credits_; }
  // Queues `sent` against one credit. FailedPrecondition without a credit, Unavailable after
  // Close(); in both cases the caller keeps `sent`.
  absl::Status Send(Sent&& sent);
  // Returns true if a partly filled frame waits for more elements. frame() returns a different
  // number for each frame.
  bool has_open_frame() const { return frame_.has_value(); }
  uint64_t frame() const { return opened_; }
  // Ends the wait of the open frame.
  void Seal();
  // Stops sending. The client gets the reason after everything queued earlier. If Close() is called
  // several times, the first reason counts.
  void Close(const absl::Status& reason);
  bool closed() const { return closed_; }
  const absl::Status& reason() const { return reason_; }

  // --- From the client ---

  // Queues the answer to the client's hello, which is always the first message.
  void Welcome();
  bool answered() const { return answered_; }
  // Closes because the client's message was invalid or the client is not admitted. Same as Close(),
  // with one exception: before the hello has been answered, `reason` replaces the reason given to
  // an earlier Close().
  void Refuse(const absl::Status& reason);
  // InvalidArgument if the credits overflow.
  absl::Status Grant(int64_t count);
  // Records that the client has received the `count` oldest elements and errors, and appends them
  // to `received`. InvalidArgument if fewer were sent.
  absl::Status OnReceived(int64_t count, std::vector<Acknowledged>& received);
  // Takes back the unused credits. The answer is queued after everything that was queued earlier.
  void Recall();
  // Applies a whole update. The caller must then call NotifyUpdate(), after releasing the lock that
  // guards this queue.
  absl::Status Apply(const Update& update, std::vector<Acknowledged>& received);

  // --- To the client ---

  struct OutgoingMessage {
    MessageType type = MessageType::kElement;  // or kFrame, kError, kWelcome, kRecalled, kClosed
    absl::Span<const std::byte> bytes;         // of the frame or the element's block
    Loan loan;                                 // keeps `bytes`
    std::optional<ErrorMessage> error;  // a copy, since the entry moves; for kClosed: the reason
    int64_t count = 0;                  // elements or errors in it; for kRecalled: credits
  };
  bool empty() const { return !answered_ || close_sent_ || (size() == 0 && !closed_); }
  // Returns true once the message that closes the link, which is the last, has been taken.
  bool close_sent() const { return close_sent_; }
  // Returns the number of queued messages, excluding kClosed.
  size_t size() const { return entries_.size() - taken_ - (has_open_frame() ? 1 : 0); }
  // REQUIRES: not empty().
  OutgoingMessage Take();

  // Takes all elements and errors that the client has not received, in the order of sending.
  // Elements of a frame share its loan.
  std::vector<Sent> TakeUnconfirmed();

 private:
  // One message: a frame, an element, an error, or an answer to the client.
  struct Entry {
    MessageType type = MessageType::kElement;
    Sent alone;  // the element or error, unless a frame
    Loan frame;
    size_t bytes = 0;      // of the frame
    Spec spec;             // of all elements in the frame
    int64_t count = 1;     // elements or errors in it; 0 for an answer
    int64_t received = 0;  // how many of these were received
    int64_t recalled = 0;  // credits
  };

  // Copies the element into the open frame or a new frame; returns false if there is no memory for
  // a new frame.
  bool Pack(const Element& element);
  void Unpack(const Entry& entry, std::vector<Sent>& sent);
  // Drops the oldest entries as long as they have been taken and everything in them has been
  // received.
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
  Fifo<Acknowledged> members_;  // of all entries, excluding those received
  std::optional<FrameWriter> frame_;
  uint64_t opened_ = 0;  // number of frames so far
};

// Returns the complete message; empty for an element and a frame, whose bodies are separate.
std::string TextOf(const SendQueue::OutgoingMessage& next);

// Runs the events of an applied update, and clears `received`.
void NotifyUpdate(const Update& update, std::vector<Acknowledged>& received, SendEvents& events);

}  // namespace penstock::transfer
#pragma GCC visibility pop
