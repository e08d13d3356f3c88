// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>

#include "control/sync/mutex.h"

namespace penstock {

// State of nodes that outlives their iterators. Owned by the outermost Repeat above the node
// (Cache: from one pass to the next), or by the running dataset (Distribute: RunContext::kept). Any
// thread.
class KeptAcrossPasses {
 public:
  // Returns the kept state of node number `node`, empty at first. Only the node's iterator uses the
  // state, and a node has only one iterator at a time.
  std::shared_ptr<void>& Of(int node) {
    MutexLock lock(mu_);
    return by_node_[node];  // entries never move
  }

  // Distribute: notes that a pass produced no element because other consumers took all of its
  // elements. Such a pass does not mean that the input is empty.
  void NoteOthersTookAll() { others_took_all_ = true; }
  bool TakeOthersTookAll() { return others_took_all_.exchange(false); }

 private:
  Mutex mu_;
  std::map<int, std::shared_ptr<void>> by_node_ GUARDED_BY(mu_);
  std::atomic<bool> others_took_all_ = false;
};

}  // namespace penstock
