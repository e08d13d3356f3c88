// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

namespace penstock {

struct CachedElements;  // transforms/cache_store.h

// What this process keeps of a node beyond the iterators over it: gone with the last
// Dataset and iterator that have the node, and no part of its definition.
struct KeptByNode {
  std::mutex mu;
  int64_t epochs = 0;  // begun of it (epochs.h); guarded by a lock of that file's
  // Of Cache in memory: its input, whole. Guarded by mu.
  std::shared_ptr<const CachedElements> cached;
};

}  // namespace penstock
