// SPDX-License-Identifier: Apache-2.0
// The checksum of the journal's records and of its snapshots' pieces.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>

namespace penstock::control {

// CRC-32, as zlib's.
inline uint32_t Checksum(const void* data, size_t size) {
  return static_cast<uint32_t>(
      crc32_z(crc32_z(0, nullptr, 0), static_cast<const Bytef*>(data), size));
}

}  // namespace penstock::control
