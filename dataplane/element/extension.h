// SPDX-License-Identifier: Apache-2.0
// Typed extensions at the end of a head. They allow new fields in blocks without a new version,
// because a reader skips types that it does not know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "dataplane/element/block.h"

#pragma GCC visibility push(default)
namespace penstock {

// Types of extensions. The numbers are fixed on the wire and never reused (docs/element.md).
enum class ExtensionType : uint16_t {
  kNone = 0,      // the end of the extensions
  kStatus = 1,    // the status of an ERROR block
  kBookmark = 2,  // the partition's position after this element
  // 3 and 4 are reserved for lineage and checksum.
};

// Precedes each extension's bytes, which are padded to a multiple of 8.
struct ExtensionHeader {
  uint16_t type;
  uint16_t reserved;  // 0
  uint32_t bytes;     // without this header and the padding
};
static_assert(sizeof(ExtensionHeader) == 8, "fixed in docs/element.md");

// Returns the number of bytes that an extension of `payload_bytes` takes in the head.
inline constexpr size_t ExtensionBytes(size_t payload_bytes) {
  return sizeof(ExtensionHeader) + AlignUp(payload_bytes, 8);
}

// Writes extensions one after another into the memory of BlockWriter::extensions().
class ExtensionWriter {
 public:
  explicit ExtensionWriter(absl::Span<std::byte> room) : room_(room) {}
  // Returns the memory into which the caller writes the next extension's bytes. REQUIRES: the
  // unused space has at least ExtensionBytes(payload_bytes).
  absl::Span<std::byte> Add(ExtensionType type, size_t payload_bytes);

 private:
  absl::Span<std::byte> room_;  // the unused rest
};

// Returns the first extension of `type`; nullopt if the block has none. REQUIRES: CheckBlock has
// accepted the block, or BlockWriter wrote it.
std::optional<absl::Span<const std::byte>> FindExtension(const std::byte* block,
                                                         ExtensionType type);

// Returns DataLoss unless the extensions follow one another within the space for extensions.
// REQUIRES: head_bytes and extension_bytes have been checked.
absl::Status CheckExtensions(const std::byte* block);

}  // namespace penstock
#pragma GCC visibility pop
