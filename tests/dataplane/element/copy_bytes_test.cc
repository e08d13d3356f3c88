// SPDX-License-Identifier: Apache-2.0
#include "dataplane/element/copy_bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
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
        // As far ahead of `from` as that, modulo a page.
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

TEST(CopyBytes, TakesNoPlaceForNoBytes) {
  CopyBytes(nullptr, nullptr, 0);
}

}  // namespace
}  // namespace penstock
