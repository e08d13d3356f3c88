// SPDX-License-Identifier: Apache-2.0
// The checksum of journal records and of the pieces of a snapshot.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>

namespace penstock::control {

// Returns the CRC-32, as zlib does. `before`: the checksum of the bytes before these.
inline uint32_t Checksum(const void* data, size_t size, uint32_t before = 0) {
  return static_cast<uint32_t>(crc32_z(before, static_cast<const Bytef*>(data), size));
}

}  // namespace penstock::control
