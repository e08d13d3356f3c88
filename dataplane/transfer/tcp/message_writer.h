// SPDX-License-Identifier: Apache-2.0
// Writes messages to a worker's socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/message.h"
#include "dataplane/transfer/tcp/wire.h"
#include "penstock/loan.h"

namespace penstock::transfer::tcp {

// If more bytes are likely to follow, a write of fewer bytes than this is not worth a system call
// and its packets.
inline constexpr size_t kMinWriteBytes = 256 << 10;

// One message: text alone, or a head and the bytes of an element or a frame.
struct QueuedMessage {
  std::string text;
  MessageType type = MessageType::kElement;
  absl::Span<const std::byte> bytes;
  Loan loan;
  int64_t count = 0;     // number of elements and errors
  size_t elsewhere = 0;  // bytes of the element that is sent over another connection instead
  bool encoded = false;  // head and bytes are final
  Head head{};
  size_t size() const { return text.empty() ? head.size() + bytes.size() : text.size(); }
};

// Not thread-safe.
class MessageWriter {
 public:
  // The limit of messages per system call. It is low because small elements are in frames already.
  static constexpr size_t kMaxMessagesPerWrite = 8;

  void Add(QueuedMessage message) { messages_.Push(std::move(message)); }
  size_t size() const { return messages_.size(); }
  bool empty() const { return messages_.empty(); }
  void Clear();

  enum class Wrote { kAll, kSome, kFailed };
  // Writes until the socket is full or all is written. `encode` sets the head and the final bytes
  // of a message that is not encoded. If `slow` returns true, encoding takes long; earlier messages
  // are then written first if they have at least kMinWriteBytes bytes.
  Wrote Write(int fd, absl::FunctionRef<void(QueuedMessage&)> encode,
              absl::FunctionRef<bool()> slow);
  // Returns the errno of kFailed.
  int error() const { return error_; }

 private:
  void Written(size_t bytes);

  Fifo<QueuedMessage> messages_;
  size_t written_ = 0;  // bytes of the first message
  int error_ = 0;
};

}  // namespace penstock::transfer::tcp
