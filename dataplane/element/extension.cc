// SPDX-License-Identifier: Apache-2.0
#include "dataplane/element/extension.h"

#include <cstring>

#include "penstock/check.h"

namespace penstock {
namespace {

absl::Span<const std::byte> RoomOf(const std::byte* block) {
  const HeadPrefix& prefix = PrefixOf(block);
  return absl::MakeConstSpan(block + prefix.head_bytes - prefix.extension_bytes,
                             prefix.extension_bytes);
}

ExtensionHeader HeaderAt(absl::Span<const std::byte> rest) {
  ExtensionHeader header;
  std::memcpy(&header, rest.data(), sizeof(header));
  return header;
}

}  // namespace

absl::Span<std::byte> ExtensionWriter::Add(ExtensionType type, size_t payload_bytes) {
  PENSTOCK_CHECK(ExtensionBytes(payload_bytes) <= room_.size());
  const ExtensionHeader header = {.type = static_cast<uint16_t>(type),
                                  .reserved = 0,
                                  .bytes = static_cast<uint32_t>(payload_bytes)};
  std::memcpy(room_.data(), &header, sizeof(header));
  const absl::Span<std::byte> payload = room_.subspan(sizeof(header), payload_bytes);
  room_.remove_prefix(ExtensionBytes(payload_bytes));
  return payload;
}

std::optional<absl::Span<const std::byte>> FindExtension(const std::byte* block,
                                                         ExtensionType type) {
  absl::Span<const std::byte> rest = RoomOf(block);
  while (!rest.empty()) {
    const ExtensionHeader header = HeaderAt(rest);
    if (header.type == static_cast<uint16_t>(ExtensionType::kNone)) break;
    if (header.type == static_cast<uint16_t>(type))
      return rest.subspan(sizeof(header), header.bytes);
    rest.remove_prefix(ExtensionBytes(header.bytes));
  }
  return std::nullopt;
}

absl::Status CheckExtensions(const std::byte* block) {
  absl::Span<const std::byte> rest = RoomOf(block);
  while (!rest.empty()) {
    // The space for extensions and each extension are multiples of 8 bytes, so a header fits.
    const ExtensionHeader header = HeaderAt(rest);
    if (header.type == static_cast<uint16_t>(ExtensionType::kNone)) break;
    if (ExtensionBytes(header.bytes) > rest.size())
      return absl::DataLossError("an element's block is damaged: an extension is too long");
    rest.remove_prefix(ExtensionBytes(header.bytes));
  }
  return absl::OkStatus();
}

}  // namespace penstock
