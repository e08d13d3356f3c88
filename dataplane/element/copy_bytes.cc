// SPDX-License-Identifier: Apache-2.0
#include "dataplane/element/copy_bytes.h"

#include <cstdint>
#include <cstring>

namespace penstock {
namespace {

constexpr uintptr_t kPageBytes = 4096;
constexpr uintptr_t kWidestLoad = 64;  // bytes
constexpr size_t kShort = 512;         // bytes; no copy of so few is worth a look

struct Sixteen {
  std::byte bytes[16];
};

}  // namespace

void CopyBytes(void* to, const void* from, size_t bytes) {
  const uintptr_t ahead =
      (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % kPageBytes;
  if (bytes == 0) return;
  if (bytes < kShort || ahead == 0 || ahead >= kWidestLoad) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  // Loads of 16 bytes seldom reach into what was stored just before.
  for (; bytes >= 4 * sizeof(Sixteen); bytes -= 4 * sizeof(Sixteen)) {
    Sixteen four[4];
    std::memcpy(four, in, sizeof(four));
    std::memcpy(out, four, sizeof(four));
    in += sizeof(four);
    out += sizeof(four);
  }
  std::memcpy(out, in, bytes);
}

}  // namespace penstock
