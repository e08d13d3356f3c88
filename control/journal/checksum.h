// SPDX-License-Identifier: Apache-2.0
// The checksum of journal records and of the pieces of a snapshot.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>

namespace penstock::control {

// Returns the CRC-32, as zlib does.
inline uint32_t Checksum(const void* data, size_t size) {
  return static_cast<uint32_t>(
      crc32_z(crc32_z(0, nullptr, 0), static_cast<const Bytef*>(data), size));
}

}  // namespace penstock::control
