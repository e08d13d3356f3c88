// SPDX-License-Identifier: Apache-2.0
#include "dataplane/element/copy_bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace penstock {
namespace {

TEST(CopyBytes, CopiesAllAndNothingElseHoweverTheTwoLie) {
  constexpr size_t kPage = 4096;
  constexpr std::byte kUntouched{0xee};
  std::vector<std::byte> from(3 * kPage);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 31 + i / 256);
  for (const size_t bytes : {0, 1, 63, 511, 512, 513, 575, 1000, 4096, 5000}) {
    for (const size_t begin : {0, 7, 64}) {
      for (size_t ahead = 0; ahead <= 65; ++ahead) {
        std::vector<std::byte> memory(4 * kPage, kUntouched);
        // `ahead` bytes after the source, modulo a page.
        const uintptr_t place = reinterpret_cast<uintptr_t>(from.data()) + begin + ahead;
        const size_t at = (place - reinterpret_cast<uintptr_t>(memory.data())) % kPage;
        CopyBytes(memory.data() + at, from.data() + begin, bytes);
        for (size_t i = 0; i < memory.size(); ++i) {
          const bool inside = i >= at && i < at + bytes;
          ASSERT_EQ(memory[i], inside ? from[begin + i - at] : kUntouched)
              << bytes << " bytes, " << ahead << " ahead, at " << i;
        }
      }
    }
  }
}

// Copies of 4 MiB and more bypass the caches.
TEST(CopyBytes, CopiesAllOfManyBytesAndNothingElse) {
  constexpr size_t kMany = (4 << 20) + 1234;
  constexpr size_t kRoom = 128;
  std::vector<uint32_t> from(kMany / sizeof(uint32_t) + 2 * kRoom);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint32_t>(i * 2654435761);
  const auto* in = reinterpret_cast<const std::byte*>(from.data());
  for (const size_t bytes : {kMany - 1234, kMany}) {
    for (const size_t at : {0, 1, 16, 63}) {
      for (const size_t begin : {0, 5, 64}) {
        std::vector<std::byte> memory(kMany + kRoom, std::byte{0xee});
        CopyBytes(memory.data() + at, in + begin, bytes);
        ASSERT_EQ(std::memcmp(memory.data() + at, in + begin, bytes), 0);
        for (size_t i = 0; i < memory.size(); ++i) {
          if (i >= at && i < at + bytes) continue;
          ASSERT_EQ(memory[i], std::byte{0xee}) << bytes << " bytes at " << at << ", at " << i;
        }
      }
    }
  }
}

TEST(CopyBytes, TakesNoPlaceForNoBytes) {
  CopyBytes(nullptr, nullptr, 0);
}

}  // namespace
}  // namespace penstock
