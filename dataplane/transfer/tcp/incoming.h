// SPDX-License-Identifier: Apache-2.0
// Messages that come over a connection. A body is read to where it is to stay:
// the head comes first, then whoever reads says where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/transfer/tcp/wire.h"

namespace penstock::transfer::tcp {

// Not thread-safe. Takes no memory but for what IntoText() was called, and what is
// read ahead.
class Incoming {
 public:
  // `ahead_bytes`: so much is read behind what was asked for, if it has come. For
  // small messages, several of which then take one system call; bodies that are to
  // be read to their places want 0.
  explicit Incoming(size_t ahead_bytes = 0) : ahead_buffer_(ahead_bytes) {}

  enum class Got {
    kHead,     // type() and body_bytes() are known; Into() or IntoText() must follow
    kMessage,  // the body is where it was to go
    kNothing,  // no more has come
    kEnd,      // the other side sends nothing more
  };
  // Reads on, one step. DataLoss: what came was altered on its way, or is no message;
  // InvalidArgument: it is none that there is; Unavailable: the connection broke.
  absl::StatusOr<Got> Read(int fd);

  MessageType type() const { return fields_.type; }
  uint8_t flags() const { return fields_.flags; }
  uint64_t body_bytes() const { return fields_.body_bytes; }
  // The body goes there. REQUIRES: as many bytes.
  void Into(absl::Span<std::byte> body);
  // The body goes into text(), behind the message's header: as Decode() takes it.
  void IntoText();
  std::string_view text() const { return text_; }

  // Bytes read so far.
  uint64_t total() const { return total_; }
  // Something else took the turn meanwhile, and epoll may have told of more.
  void LookAgain() { drained_ = false; }
  // epoll has told that the connection is at its end: a read that brings less than
  // was asked for is not the last any more.
  void ExpectEnd() { end_expected_ = true; }

 private:
  bool TakeAhead();
  absl::StatusOr<Got> Receive(int fd);

  Head head_{};
  size_t head_at_ = 0;  // bytes of the (next) head that are here
  bool in_body_ = false;
  HeadFields fields_;
  absl::Span<std::byte> body_;
  size_t body_at_ = 0;
  std::string text_;
  std::vector<std::byte> ahead_buffer_;
  absl::Span<const std::byte> ahead_;  // of it: read, and not taken yet
  uint64_t total_ = 0;
  bool drained_ = false;  // the last read brought less than was asked for
  bool end_expected_ = false;
};

// Reads and drops what has come, up to a bound. kNothing: no more; kMessage: there
// may be more; kEnd: the end, or the connection broke.
Incoming::Got Discard(int fd);

}  // namespace penstock::transfer::tcp
