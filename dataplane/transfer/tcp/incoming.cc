// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/incoming.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dataplane/transfer/tcp/socket.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock::transfer::tcp {

absl::StatusOr<Incoming::Got> Incoming::Read(int fd) {
  while (true) {
    if (!in_body_ && head_at_ == kHeadBytes) {
      ASSIGN_OR_RETURN(fields_, ParseHead(head_));
      body_ = {};
      body_at_ = 0;
      in_body_ = true;
      head_at_ = 0;
      return Got::kHead;
    }
    if (in_body_ && body_at_ == body_bytes()) {
      PENSTOCK_CHECK(body_.size() == body_bytes());
      in_body_ = false;
      if (SumOfBody(type(), flags(), body_) != fields_.sum_of_body) {
        return absl::DataLossError("a message was corrupted in transit (wrong body checksum)");
      }
      return Got::kMessage;
    }
    if (TakeAhead()) continue;
    if (std::exchange(drained_, false) && !end_expected_) return Got::kNothing;
    ASSIGN_OR_RETURN(Got got, Receive(fd));
    if (got != Got::kMessage) return got;
  }
}

void Incoming::Into(absl::Span<std::byte> body) {
  PENSTOCK_CHECK(in_body_ && body_at_ == 0 && body.size() == body_bytes());
  body_ = body;
}

void Incoming::IntoText() {
  text_.resize(kMessageHeaderBytes + body_bytes());
  std::memset(text_.data(), 0, kMessageHeaderBytes);
  text_[0] = static_cast<char>(type());
  Into({reinterpret_cast<std::byte*>(text_.data()) + kMessageHeaderBytes, body_bytes()});
}

// Moves data that was read ahead to its place; returns false if there is none.
bool Incoming::TakeAhead() {
  if (ahead_.empty()) return false;
  const auto take = [this](std::byte* to, size_t most) {
    const size_t bytes = std::min(most, ahead_.size());
    std::copy_n(ahead_.data(), bytes, to);
    ahead_.remove_prefix(bytes);
    return bytes;
  };
  if (in_body_) body_at_ += take(body_.data() + body_at_, body_.size() - body_at_);
  head_at_ += take(reinterpret_cast<std::byte*>(head_.data()) + head_at_, kHeadBytes - head_at_);
  return true;
}

// Reads the rest of a body and the next head in one call, so that the bytes of a body are read
// directly into their place.
absl::StatusOr<Incoming::Got> Incoming::Receive(int fd) {
  iovec parts[3];
  size_t count = 0;
  const size_t of_body = in_body_ ? body_.size() - body_at_ : 0;
  if (of_body > 0) parts[count++] = {body_.data() + body_at_, of_body};
  const size_t of_head = kHeadBytes - head_at_;
  parts[count++] = {head_.data() + head_at_, of_head};
  if (!ahead_buffer_.empty()) parts[count++] = {ahead_buffer_.data(), ahead_buffer_.size()};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  ssize_t got;
  do {
    got = ::recvmsg(fd, &message, MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Got::kNothing;
  if (got < 0) return BrokenBy("the connection broke", errno);
  if (got == 0) return Got::kEnd;
  const size_t bytes = static_cast<size_t>(got);
  total_ += bytes;
  drained_ = bytes < of_body + of_head + ahead_buffer_.size();
  const size_t to_body = std::min(bytes, of_body);
  const size_t to_head = std::min(bytes - to_body, of_head);
  body_at_ += to_body;
  head_at_ += to_head;
  ahead_ = absl::MakeConstSpan(ahead_buffer_).first(bytes - to_body - to_head);
  return Got::kMessage;
}

Incoming::Got Discard(int fd) {
  constexpr int kReads = 64;
  char dropped[64 << 10];  // nothing is copied there: tcp(7), MSG_TRUNC
  for (int i = 0; i < kReads; ++i) {
    const ssize_t got = ::recv(fd, dropped, sizeof dropped, MSG_TRUNC | MSG_DONTWAIT);
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Incoming::Got::kNothing;
    return Incoming::Got::kEnd;
  }
  return Incoming::Got::kMessage;
}

}  // namespace penstock::transfer::tcp
