// SPDX-License-Identifier: Apache-2.0
// Elements and frames compressed on their way over a network. The message:
//
//   u8 type = compressed, seven zeros | u8 codec, u8 type of what is in it, six zeros |
//   u64 bytes of that | as the codec writes it
//
// Little endian. It is sent only where it is shorter.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/transfer/message.h"

namespace penstock::transfer {

// Fixed on the wire.
enum class Codec : uint8_t { kNone = 0, kSnappy = 1, kLz4 = 2 };
const char* NameOf(Codec codec);

inline constexpr size_t kCompressedPrefixBytes = 16;
// What a codec takes at once; more goes as it is. LZ4 counts in an int.
inline constexpr size_t kMaxCodecBytes = size_t{0x7E000000};

struct CompressedPrefix {
  Codec codec = Codec::kNone;
  MessageType type = MessageType::kElement;  // or kFrame
  uint64_t bytes = 0;                        // of what is in it
};

// What Compress() needs for its result, prefix included. REQUIRES: bytes <= kMaxCodecBytes.
size_t CompressedBound(Codec codec, size_t bytes);
// The body of the message, in `into`: its bytes. 0 if it would not be shorter.
// REQUIRES: `into` has CompressedBound() bytes, and `codec` is one.
size_t Compress(Codec codec, MessageType type, absl::Span<const std::byte> from,
                absl::Span<std::byte> into);

// Of a body that came from outside. DataLoss for what Compress() does not write.
absl::StatusOr<CompressedPrefix> ReadCompressedPrefix(absl::Span<const std::byte> body);
// What is in it. REQUIRES: `into` has as many bytes as the prefix says. DataLoss if it does
// not become them exactly.
absl::Status Decompress(const CompressedPrefix& prefix, absl::Span<const std::byte> body,
                        absl::Span<std::byte> into);

}  // namespace penstock::transfer
