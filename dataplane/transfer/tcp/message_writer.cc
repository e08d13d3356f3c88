// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/message_writer.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace penstock::transfer::tcp {

void MessageWriter::Clear() {
  while (!messages_.empty()) messages_.Pop();
}

MessageWriter::Wrote MessageWriter::Write(int fd, absl::FunctionRef<void(QueuedMessage&)> encode,
                                          absl::FunctionRef<bool()> slow) {
  while (!messages_.empty()) {
    iovec parts[2 * kMaxMessagesPerWrite];
    size_t count = 0;
    size_t bytes = 0;
    size_t skip = written_;
    const auto add = [&](const void* from, size_t size) {
      if (skip < size) {
        parts[count++] = {const_cast<char*>(static_cast<const char*>(from)) + skip, size - skip};
        bytes += size - skip;
      }
      skip -= std::min(skip, size);
    };
    for (size_t i = 0; i < std::min(messages_.size(), kMaxMessagesPerWrite); ++i) {
      QueuedMessage& message = messages_[i];
      if (!message.encoded && bytes >= kMinWriteBytes && slow()) break;
      encode(message);
      if (message.text.empty()) {
        add(message.head.data(), message.head.size());
        add(message.bytes.data(), message.bytes.size());
      } else {
        add(message.text.data(), message.text.size());
      }
    }
    msghdr header{};
    header.msg_iov = parts;
    header.msg_iovlen = count;
    const ssize_t put = ::sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Wrote::kSome;
    if (put < 0) {
      error_ = errno;
      return Wrote::kFailed;
    }
    Written(static_cast<size_t>(put));
    if (static_cast<size_t>(put) < bytes) return Wrote::kSome;
  }
  return Wrote::kAll;
}

void MessageWriter::Written(size_t bytes) {
  written_ += bytes;
  while (!messages_.empty() && written_ >= messages_.front().size()) {
    written_ -= messages_.front().size();
    messages_.Pop();
  }
}

}  // namespace penstock::transfer::tcp
