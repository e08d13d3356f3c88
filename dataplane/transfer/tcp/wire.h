// SPDX-License-Identifier: Apache-2.0
// The data on a connection: messages (dataplane/transfer/message.h), each after a prefix. The
// prefix has the length of the message, including its header, and checksums that detect corruption
// in transit.
//
//   u64 bytes | u32 sum of the body | u32 sum of the head | u8 type, u8 flags, six zeros |
//   body of (bytes - 8) bytes
//
// Little endian. The body of an element or a frame is its block, as it is in memory; a client reads
// it straight into a slot. Sums are CRC-32C. The sum of the head covers the twelve bytes before
// that sum and the eight bytes after it. The sum of a body covers the whole body, except for
// elements and frames without kSumOfAll. Their sum covers only the bytes that identify the
// elements: the heads of the blocks, and the frame's prefix.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/transfer/link_versions.h"
#include "dataplane/transfer/message.h"

namespace penstock::transfer::tcp {

// The versions of the bytes around messages. Version 1 had no sums.
inline constexpr LinkVersions kWireVersions = {.lowest = 2, .highest = 2};
inline constexpr size_t kPrefixBytes = 16;
// The bytes before the body.
inline constexpr size_t kHeadBytes = kPrefixBytes + kMessageHeaderBytes;

enum Flag : uint8_t {
  // The sum covers the whole body. In a hello: requests such sums in the worker's messages.
  kSumOfAll = 1,
  // In a hello: the client is ready to open further connections for this link.
  kWantsStripes = 2,
};

// The maximum size in bytes of a message that a worker reads from a client after its hello. Such
// messages have known sizes.
inline constexpr uint64_t kMaxRequestBytes = 256;

using Head = std::array<char, kHeadBytes>;

// Returns the sum of a body of type `type`, as described above.
uint32_t SumOfBody(MessageType type, uint8_t flags, absl::Span<const std::byte> body);

// Returns the head for a body with these properties.
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
// DataLoss if the head's sum does not match, InvalidArgument if the head is malformed in another
// way.
absl::StatusOr<HeadFields> ParseHead(const Head& head);

// Reserves space for a prefix at the end of `bytes` and returns the prefix's position. Append the
// message to `bytes`, then call FinishMessage().
inline size_t BeginMessage(std::string& bytes) {
  bytes.append(kPrefixBytes, '\0');
  return bytes.size() - kPrefixBytes;
}
void FinishMessage(std::string& bytes, size_t begun_at, uint8_t flags = 0);

// Returns a message of message.h with its prefix.
inline std::string WithPrefix(std::string_view message, uint8_t flags = 0) {
  std::string bytes;
  const size_t at = BeginMessage(bytes);
  bytes += message;
  FinishMessage(bytes, at, flags);
  return bytes;
}

}  // namespace penstock::transfer::tcp
