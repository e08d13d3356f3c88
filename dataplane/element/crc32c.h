// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), computed with the processor's instruction if there is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#pragma GCC visibility push(default)
namespace penstock {

// Returns the CRC of `bytes`. `before` is the CRC of the bytes that precede `bytes`.
uint32_t Crc32c(std::string_view bytes, uint32_t before = 0);
// Same as Crc32c(), but never uses the processor's instruction; tests compare the two functions.
uint32_t Crc32cPortable(std::string_view bytes, uint32_t before = 0);

// Returns the CRC in the form in which TFRecord files store it: rotated and offset, since a CRC
// over bytes that contain a CRC themselves is weak.
inline uint32_t MaskedCrc32c(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace penstock
#pragma GCC visibility pop
