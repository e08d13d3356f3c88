// SPDX-License-Identifier: Apache-2.0
// What goes over a connection: messages (dataplane/transfer/message.h), each
// behind eight bytes that say how long it is, its own header included.
//
//   u64 bytes | u8 type, seven zeros | body of (bytes - 8) bytes
//
// Little endian. The body of an element or a frame is its block, as it lies in
// memory; a client reads it straight into a slot.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "dataplane/transfer/message.h"

namespace penstock::transfer::tcp {

inline constexpr size_t kLengthBytes = 8;
// Before the body.
inline constexpr size_t kHeadBytes = kLengthBytes + kMessageHeaderBytes;

// What a worker takes of a client after its hello: messages of known size.
inline constexpr uint64_t kMaxRequestBytes = 256;

using Head = std::array<char, kHeadBytes>;

inline Head HeadOf(MessageType type, uint64_t body_bytes) {
  Head head{};
  const uint64_t bytes = kMessageHeaderBytes + body_bytes;
  std::memcpy(head.data(), &bytes, sizeof bytes);
  head[kLengthBytes] = static_cast<char>(type);
  return head;
}

// Leaves room for a length at the end of `bytes`, and where that is; what is then
// added to `bytes` is the message, and FinishMessage() says how long it became.
inline size_t BeginMessage(std::string& bytes) {
  bytes.append(kLengthBytes, '\0');
  return bytes.size() - kLengthBytes;
}
inline void FinishMessage(std::string& bytes, size_t begun_at) {
  const uint64_t length = bytes.size() - begun_at - kLengthBytes;
  std::memcpy(bytes.data() + begun_at, &length, sizeof length);
}

// A message of message.h with its length before it.
inline std::string WithLength(std::string_view message) {
  std::string bytes;
  const size_t at = BeginMessage(bytes);
  bytes += message;
  FinishMessage(bytes, at);
  return bytes;
}

}  // namespace penstock::transfer::tcp
