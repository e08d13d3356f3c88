// SPDX-License-Identifier: Apache-2.0
// Typed extensions at the end of a head: what a release adds to blocks without
// a new version. A reader passes over types it does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "dataplane/element/block.h"

namespace penstock {

// Numbers are fixed on the wire and never used again (docs/element.md).
enum class ExtensionType : uint16_t {
  kNone = 0,      // from here on there is none
  kStatus = 1,    // of an ERROR block
  kBookmark = 2,  // the partition's position behind this element
  // 3 and 4 are reserved for lineage and checksum.
};

// Stands before each extension's bytes, which are padded to a multiple of 8.
struct ExtensionHeader {
  uint16_t type;
  uint16_t reserved;  // 0
  uint32_t bytes;     // without this header and the padding
};
static_assert(sizeof(ExtensionHeader) == 8, "fixed in docs/element.md");

// What an extension of `payload_bytes` takes in the head.
inline constexpr size_t ExtensionBytes(size_t payload_bytes) {
  return sizeof(ExtensionHeader) + AlignUp(payload_bytes, 8);
}

// Fills BlockWriter::extensions() from its front.
class ExtensionWriter {
 public:
  explicit ExtensionWriter(absl::Span<std::byte> room) : room_(room) {}
  // The bytes of the next extension, to be written in place.
  // REQUIRES: ExtensionBytes(payload_bytes) fit into what is left of the room.
  absl::Span<std::byte> Add(ExtensionType type, size_t payload_bytes);

 private:
  absl::Span<std::byte> room_;  // what is left
};

// The first extension of that type; nullopt if the block has none. REQUIRES: a
// block that CheckBlock passed or BlockWriter wrote.
std::optional<absl::Span<const std::byte>> FindExtension(const std::byte* block,
                                                         ExtensionType type);

// DataLoss unless the extensions follow each other inside their room. REQUIRES:
// head_bytes and extension_bytes were checked.
absl::Status CheckExtensions(const std::byte* block);

}  // namespace penstock
