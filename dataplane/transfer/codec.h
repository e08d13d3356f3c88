// SPDX-License-Identifier: Apache-2.0
// Elements and frames that are compressed for a network. The message:
//
//   u8 type = compressed, seven zeros | u8 codec, u8 type of the content, six zeros |
//   u64 bytes of the content | output of the codec
//
// Little endian. Such a message is sent only if it is shorter than the content.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dataplane/transfer/message.h"

namespace penstock::transfer {

// The numbers are fixed on the wire.
enum class Codec : uint8_t { kNone = 0, kSnappy = 1, kLz4 = 2 };
const char* NameOf(Codec codec);

inline constexpr size_t kCompressedPrefixBytes = 16;
// The maximum input of a codec in bytes; a larger body is sent uncompressed. LZ4 uses an int for
// sizes.
inline constexpr size_t kMaxCodecBytes = size_t{0x7E000000};

struct CompressedPrefix {
  Codec codec = Codec::kNone;
  MessageType type = MessageType::kElement;  // or kFrame
  uint64_t bytes = 0;                        // uncompressed size of the content
};

// Returns the number of bytes that Compress() needs for its output, prefix included. REQUIRES:
// bytes <= kMaxCodecBytes.
size_t CompressedBound(Codec codec, size_t bytes);
// Writes the body of the message to `into` and returns its size in bytes, or 0 if the message would
// not be shorter than the content. REQUIRES: `into` has CompressedBound() bytes, and `codec` is not
// kNone.
size_t Compress(Codec codec, MessageType type, absl::Span<const std::byte> from,
                absl::Span<std::byte> into);

// Reads the prefix of an untrusted body. DataLoss for a prefix that Compress() cannot have written.
absl::StatusOr<CompressedPrefix> ReadCompressedPrefix(absl::Span<const std::byte> body);
// Decompresses the content into `into`. REQUIRES: `into` has exactly prefix.bytes bytes. DataLoss
// if the body does not decompress to exactly this size.
absl::Status Decompress(const CompressedPrefix& prefix, absl::Span<const std::byte> body,
                        absl::Span<std::byte> into);

}  // namespace penstock::transfer
