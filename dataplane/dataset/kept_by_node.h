// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "control/sync/mutex.h"

namespace penstock {

struct CachedElements;  // transforms/cache_store.h

// What this process keeps of a node beyond the iterators over it: gone with the last
// Dataset and iterator that have the node, and no part of its definition.
struct KeptByNode {
  Mutex mu;
  int64_t epochs = 0;  // begun of it (epochs.h); guarded by a lock of that file's
  // Of Cache in memory: its input, whole.
  std::shared_ptr<const CachedElements> cached GUARDED_BY(mu);
};

}  // namespace penstock
