// SPDX-License-Identifier: Apache-2.0
// Messages that arrive over a connection. A body is read directly into its final place: the head
// arrives first, then the caller chooses the place of the body.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/memory/mapping_allocator.h"
#include "dataplane/transfer/tcp/wire.h"

namespace penstock::transfer::tcp {

// Not thread-safe. Allocates only the text of IntoText() and the read-ahead buffer.
class Incoming {
 public:
  // A read takes up to `ahead_bytes` bytes more than were requested, if they have arrived, so that
  // several small messages take one system call. Use 0 if bodies must be read directly into their
  // places.
  explicit Incoming(size_t ahead_bytes = 0) : ahead_buffer_(ahead_bytes) {}

  enum class Got {
    kHead,     // type() and body_bytes() are known; Into() or IntoText() must follow
    kMessage,  // the body is in its place
    kNothing,  // nothing more has arrived
    kEnd,      // the other side sends nothing more
  };
  // Reads one step further. DataLoss: the data was corrupted in transit, or is not a message.
  // InvalidArgument: the message is of an unknown kind. Unavailable: the connection broke.
  absl::StatusOr<Got> Read(int fd);

  MessageType type() const { return fields_.type; }
  uint8_t flags() const { return fields_.flags; }
  uint64_t body_bytes() const { return fields_.body_bytes; }
  // Reads the body into `body`. REQUIRES: `body` has body_bytes() bytes.
  void Into(absl::Span<std::byte> body);
  // Reads the body into text(), after the message's header, which is the form that Decode()
  // expects.
  void IntoText();
  std::string_view text() const { return {text_.data(), text_.size()}; }

  // Returns the bytes read so far.
  uint64_t total() const { return total_; }
  // Call this after other work, because epoll may have reported more data meanwhile.
  void LookAgain() { drained_ = false; }
  // Call this when epoll has reported the end of the connection. A short read then does not mean
  // that all data was read.
  void ExpectEnd() { end_expected_ = true; }

 private:
  bool TakeAhead();
  absl::StatusOr<Got> Receive(int fd);

  Head head_{};
  size_t head_at_ = 0;  // bytes of the (next) head received so far
  bool in_body_ = false;
  HeadFields fields_;
  absl::Span<std::byte> body_;
  size_t body_at_ = 0;
  std::vector<char, MappingAllocator<char>> text_;
  std::vector<std::byte> ahead_buffer_;
  absl::Span<const std::byte> ahead_;  // the part of the buffer that was read but not used yet
  uint64_t total_ = 0;
  bool drained_ = false;  // the last read returned less than was requested
  bool end_expected_ = false;
};

// Reads and drops the data that has arrived, up to a bound. kNothing: no more; kMessage: there may
// be more; kEnd: the end, or the connection broke.
Incoming::Got Discard(int fd);

}  // namespace penstock::transfer::tcp
