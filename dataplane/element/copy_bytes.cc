// SPDX-License-Identifier: Apache-2.0
#include "dataplane/element/copy_bytes.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <cstdint>
#include <cstring>

namespace penstock {
namespace {

constexpr uintptr_t kPageBytes = 4096;
constexpr uintptr_t kWidestLoad = 64;  // bytes
constexpr size_t kShort = 512;         // bytes; a check costs more than it saves for shorter copies

struct Sixteen {
  std::byte bytes[16];
};

#ifdef __SSE2__
constexpr size_t kLarge = 4 << 20;  // bytes; more than the cache of one core
constexpr size_t kLine = 64;

// Copies without using the caches: `to` is not read before it is written, and does not stay in a
// cache.
void CopyPastCaches(std::byte* to, const std::byte* from, size_t bytes) {
  const size_t before = -reinterpret_cast<uintptr_t>(to) % kLine;
  std::memcpy(to, from, before);
  to += before, from += before, bytes -= before;
  for (; bytes >= kLine; bytes -= kLine, to += kLine, from += kLine) {
    const auto* in = reinterpret_cast<const __m128i*>(from);
    auto* out = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  _mm_sfence();  // a release store does not order the stores above
  std::memcpy(to, from, bytes);
}
#endif

}  // namespace

void CopyBytes(void* to, const void* from, size_t bytes) {
  const uintptr_t ahead =
      (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % kPageBytes;
  if (bytes == 0) return;
#ifdef __SSE2__
  if (bytes >= kLarge) {
    return CopyPastCaches(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  }
#endif
  if (bytes < kShort || ahead == 0 || ahead >= kWidestLoad) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  // Loads of 16 bytes seldom seem to overlap a store just before them.
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
