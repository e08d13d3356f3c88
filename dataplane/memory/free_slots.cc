// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/free_slots.h"

#include <unistd.h>

#include <algorithm>

namespace penstock {
namespace {

constexpr size_t kUsualLevel2 = size_t{2} << 20;                                         // bytes
constexpr size_t kSmallestLevel2 = size_t{512} << 10, kLargestLevel2 = size_t{4} << 20;  // bytes

}  // namespace

size_t RestBytes() {
  static const size_t bytes = [] {
    const long level2 = ::sysconf(_SC_LEVEL2_CACHE_SIZE);  // 0 or -1 where the system does not know
    const size_t each = level2 > 0 ? static_cast<size_t>(level2) : kUsualLevel2;
    return 2 * std::clamp(each, kSmallestLevel2, kLargestLevel2);
  }();
  return bytes;
}

}  // namespace penstock
