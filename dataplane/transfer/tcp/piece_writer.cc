// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/piece_writer.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace penstock::transfer::tcp {

void PieceWriter::Clear() {
  while (!pieces_.empty()) pieces_.Pop();
}

PieceWriter::Wrote PieceWriter::Write(int fd, absl::FunctionRef<void(Piece&)> encode,
                                      absl::FunctionRef<bool()> slow) {
  while (!pieces_.empty()) {
    iovec parts[2 * kMostPieces];
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
    for (size_t i = 0; i < std::min(pieces_.size(), kMostPieces); ++i) {
      Piece& piece = pieces_[i];
      if (!piece.encoded && bytes >= kWorthWriting && slow()) break;
      encode(piece);
      if (piece.text.empty()) {
        add(piece.head.data(), piece.head.size());
        add(piece.bytes.data(), piece.bytes.size());
      } else {
        add(piece.text.data(), piece.text.size());
      }
    }
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t put = ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
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

void PieceWriter::Written(size_t bytes) {
  written_ += bytes;
  while (!pieces_.empty() && written_ >= pieces_.front().size()) {
    written_ -= pieces_.front().size();
    pieces_.Pop();
  }
}

}  // namespace penstock::transfer::tcp
