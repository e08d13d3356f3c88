// SPDX-License-Identifier: Apache-2.0
// What goes over a connection: messages (dataplane/transfer/message.h), each
// behind a prefix that says how long it is, its own header included, and by which
// it is noticed if it was altered on its way.
//
//   u64 bytes | u32 sum of the body | u32 sum of the head | u8 type, u8 flags, six zeros |
//   body of (bytes - 8) bytes
//
// Little endian. The body of an element or a frame is its block, as it lies in
// memory; a client reads it straight into a slot. Sums are CRC-32C; that of the head
// is of the twelve bytes before it and the eight behind it. That of a body is of all of
// it, but of elements and frames without kSumOfAll only of what says which elements they are:
// the heads of their blocks, and the frame's prefix.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/transfer/message.h"

namespace penstock::transfer::tcp {

inline constexpr uint32_t kWireVersion = 2;  // 1 had no sums
inline constexpr size_t kPrefixBytes = 16;
// Before the body.
inline constexpr size_t kHeadBytes = kPrefixBytes + kMessageHeaderBytes;

enum Flag : uint8_t {
  // The sum is of the whole body. In a hello: so shall those be of what the worker sends.
  kSumOfAll = 1,
  // In a hello: the client would open further connections for this link.
  kWantsStripes = 2,
};

// What a worker takes of a client after its hello: messages of known size.
inline constexpr uint64_t kMaxRequestBytes = 256;

using Head = std::array<char, kHeadBytes>;

// The sum of a body of that type, as above.
uint32_t SumOfBody(MessageType type, uint8_t flags, absl::Span<const std::byte> body);

// The head before such a body.
Head HeadOf(MessageType type, uint8_t flags, uint64_t body_bytes, uint32_t sum_of_body);
inline Head HeadOf(MessageType type, uint8_t flags, absl::Span<const std::byte> body) {
  return HeadOf(type, flags, body.size(), SumOfBody(type, flags, body));
}

struct HeadFields {
  MessageType type = MessageType::kHello;
  uint8_t flags = 0;
  uint64_t body_bytes = 0;
  uint32_t sum_of_body = 0;
};
// DataLoss if its sum is another, InvalidArgument if it is no message's for another reason.
absl::StatusOr<HeadFields> ParseHead(const Head& head);

// Leaves room for a prefix at the end of `bytes`, and where that is; what is then
// added to `bytes` is the message, which FinishMessage() completes.
inline size_t BeginMessage(std::string& bytes) {
  bytes.append(kPrefixBytes, '\0');
  return bytes.size() - kPrefixBytes;
}
void FinishMessage(std::string& bytes, size_t begun_at, uint8_t flags = 0);

// A message of message.h with its prefix before it.
inline std::string WithPrefix(std::string_view message, uint8_t flags = 0) {
  std::string bytes;
  const size_t at = BeginMessage(bytes);
  bytes += message;
  FinishMessage(bytes, at, flags);
  return bytes;
}

}  // namespace penstock::transfer::tcp
