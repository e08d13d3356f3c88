// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memory/copied.h"

#include <atomic>

#include "dataplane/element/copy_bytes.h"

namespace penstock {
namespace {

std::atomic<int64_t> copied{0};

}  // namespace

void CopyCounted(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  CopyBytes(to, from, bytes);
  copied.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

int64_t BytesCopied() {
  return copied.load(std::memory_order_relaxed);
}

}  // namespace penstock
