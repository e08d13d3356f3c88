// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "control/sync/mutex.h"

namespace penstock {

struct CachedElements;  // transforms/cache/cache_store.h

// State of a node that this process keeps beyond the node's iterators. It is not part of the node's
// definition, and is destroyed when no Dataset or iterator refers to the node any more.
struct KeptByNode {
  Mutex mu;
  int64_t epochs = 0;  // begun so far; guarded by a lock in epochs.cc
  // Distribute: how many repetitions of its named job iterators have begun. Each iterator reads a
  // new repetition, as tf.data service's iterators do.
  int64_t repetitions GUARDED_BY(mu) = 0;
  // Cache in memory: its whole input.
  std::shared_ptr<const CachedElements> cached GUARDED_BY(mu);
};

}  // namespace penstock
