// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), by the processor's instruction where it has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace penstock {

// Of `bytes`, or of what `before` is the sum of with `bytes` behind it.
uint32_t Crc32c(std::string_view bytes, uint32_t before = 0);
// The same without the instruction; what the other is tested against.
uint32_t Crc32cPortable(std::string_view bytes, uint32_t before = 0);

// As TFRecord files store it: rotated and offset, since a CRC over bytes that
// hold their own CRC says little.
inline uint32_t MaskedCrc32c(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace penstock
