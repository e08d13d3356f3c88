// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/codec.h"

#include <lz4.h>
#include <snappy.h>

#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "penstock/check.h"

namespace penstock::transfer {
namespace {

const char* Chars(absl::Span<const std::byte> bytes) {
  return reinterpret_cast<const char*>(bytes.data());
}
char* Chars(absl::Span<std::byte> bytes) {
  return reinterpret_cast<char*>(bytes.data());
}

// Writes the codec's own output and returns its size in bytes, or 0 if it does not fit.
size_t RunCodec(Codec codec, absl::Span<const std::byte> from, absl::Span<std::byte> into) {
  size_t bytes = 0;
  switch (codec) {
    case Codec::kSnappy:
      snappy::RawCompress(Chars(from), from.size(), Chars(into), &bytes);
      return bytes;
    case Codec::kLz4: {
      const int written = LZ4_compress_default(
          Chars(from), Chars(into), static_cast<int>(from.size()), static_cast<int>(into.size()));
      return written > 0 ? static_cast<size_t>(written) : 0;
    }
    case Codec::kNone:
      break;
  }
  PENSTOCK_CHECK(codec != Codec::kNone);
  return 0;
}

}  // namespace

const char* NameOf(Codec codec) {
  switch (codec) {
    case Codec::kNone:
      return "none";
    case Codec::kSnappy:
      return "snappy";
    case Codec::kLz4:
      return "lz4";
  }
  return "unknown";
}

size_t CompressedBound(Codec codec, size_t bytes) {
  const size_t most = codec == Codec::kSnappy
                          ? snappy::MaxCompressedLength(bytes)
                          : static_cast<size_t>(LZ4_compressBound(static_cast<int>(bytes)));
  return kCompressedPrefixBytes + most;
}

size_t Compress(Codec codec, MessageType type, absl::Span<const std::byte> from,
                absl::Span<std::byte> into) {
  PENSTOCK_CHECK(into.size() >= CompressedBound(codec, from.size()));
  const size_t written = RunCodec(codec, from, into.subspan(kCompressedPrefixBytes));
  if (written == 0 || kCompressedPrefixBytes + written >= from.size()) return 0;
  std::memset(into.data(), 0, kCompressedPrefixBytes);
  into[0] = static_cast<std::byte>(codec);
  into[1] = static_cast<std::byte>(type);
  const uint64_t bytes = from.size();
  std::memcpy(into.data() + 8, &bytes, sizeof bytes);
  return kCompressedPrefixBytes + written;
}

absl::StatusOr<CompressedPrefix> ReadCompressedPrefix(absl::Span<const std::byte> body) {
  if (body.size() <= kCompressedPrefixBytes) {
    return absl::DataLossError(
        absl::StrCat("a compressed message of ", body.size(), " bytes is too short"));
  }
  CompressedPrefix prefix{static_cast<Codec>(body[0]), static_cast<MessageType>(body[1])};
  std::memcpy(&prefix.bytes, body.data() + 8, sizeof prefix.bytes);
  const std::array<std::byte, 6> zeros{};
  if (std::memcmp(body.data() + 2, zeros.data(), zeros.size()) != 0) {
    return absl::DataLossError("reserved bytes of a compressed message are not zero");
  }
  if (prefix.codec != Codec::kSnappy && prefix.codec != Codec::kLz4) {
    return absl::DataLossError(absl::StrCat("a message is compressed with the unknown codec ",
                                            static_cast<int>(prefix.codec)));
  }
  if (prefix.type != MessageType::kElement && prefix.type != MessageType::kFrame) {
    return absl::DataLossError(absl::StrCat("a compressed message has the unexpected type ",
                                            static_cast<int>(prefix.type)));
  }
  if (prefix.bytes <= body.size() || prefix.bytes > kMaxCodecBytes) {
    return absl::DataLossError(absl::StrCat("a compressed message of ", body.size(),
                                            " bytes reports the invalid uncompressed size ",
                                            prefix.bytes));
  }
  return prefix;
}

absl::Status Decompress(const CompressedPrefix& prefix, absl::Span<const std::byte> body,
                        absl::Span<std::byte> into) {
  PENSTOCK_CHECK(into.size() == prefix.bytes);
  const absl::Span<const std::byte> from = body.subspan(kCompressedPrefixBytes);
  bool whole = false;
  if (prefix.codec == Codec::kSnappy) {
    size_t bytes = 0;
    whole = snappy::GetUncompressedLength(Chars(from), from.size(), &bytes) &&
            bytes == into.size() && snappy::RawUncompress(Chars(from), from.size(), Chars(into));
  } else if (from.size() <= kMaxCodecBytes) {
    whole = LZ4_decompress_safe(Chars(from), Chars(into), static_cast<int>(from.size()),
                                static_cast<int>(into.size())) == static_cast<int>(into.size());
  }
  if (whole) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("data that ", NameOf(prefix.codec), " compressed to ", from.size(),
                   " bytes does not decompress to its original ", into.size(), " bytes"));
}

}  // namespace penstock::transfer
