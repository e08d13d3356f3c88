// SPDX-License-Identifier: Apache-2.0
// The work of each node of a running dataset: elements, bytes, seconds at work, seconds spent
// waiting for other nodes. Counts are exact, but lag by a few elements while a node is being read.
// Seconds at work are estimated from a sample of timed calls, since reading the clock costs as much
// as a quick node.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "control/sync/clock.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "dataplane/dataset/graph/graph.h"
#include "penstock/iterator.h"

namespace penstock {

// One node's counts, over all iterators built for it. Any thread; relaxed.
struct NodeProfile {
  std::string name;                    // as in errors; never changes
  std::atomic<int64_t> elements{0};    // produced, including errors in their place
  std::atomic<int64_t> bytes{0};       // of their blocks; 0 for rows written into a batch
  std::atomic<int64_t> busy_ns{0};     // in this node's own code, on all threads; an estimate
  std::atomic<int64_t> waiting_ns{0};  // spent by readers waiting for its next element
  // The values last tuned or set; 0: the node has no such value.
  std::atomic<int64_t> parallelism{0};  // calls at a time
  std::atomic<int64_t> ahead{0};        // elements that the node may hold, ready or in progress
};

// The counts of all nodes of one dataset. Outlives the iterators that count into it, which may
// belong to several partitions.
class Profile {
 public:
  explicit Profile(NodePtr root);

  // `number` is the node's number (VisitNodes).
  NodeProfile& node(int number) { return nodes_[static_cast<size_t>(number)]; }
  // In topological order, inputs before their users.
  IteratorStats Stats() const;

 private:
  const NodePtr root_;
  std::deque<NodeProfile> nodes_;
};

// Measures the time that its thread spends while the scope lives, and adds it to `node`, without
// the time that nested scopes add to their own nodes. In a thread's outermost scope, `weight` is
// the number of calls that this call represents; 0: the call is not timed. A nested scope is timed
// if the outermost scope is timed. If `node` is nullptr, the scope does nothing.
class ProfileScope {
 public:
  ProfileScope(NodeProfile* node, int64_t weight);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  friend class ProfileWait;
  using Clock = SteadyClock;

  NodeProfile* node_;  // nullptr: not timed
  bool outermost_ = false;
  int64_t outer_inside_ns_ = 0;
  Clock::time_point begin_;
};

// Adds its lifetime to the time spent waiting for `node`'s next element. That time counts as work
// of no node. If `node` is nullptr, does nothing.
class ProfileWait {
 public:
  explicit ProfileWait(NodeProfile* node);
  ~ProfileWait();
  ProfileWait(const ProfileWait&) = delete;
  ProfileWait& operator=(const ProfileWait&) = delete;

 private:
  NodeProfile* const node_;
  ProfileScope::Clock::time_point begin_;
};

// Returns `iterator`, counted and timed. If it runs out of memory or threads, reading ends with an
// error that names the node; every later call returns that error (catch_exhausted.h).
std::unique_ptr<NodeIterator> Profiled(std::unique_ptr<NodeIterator> iterator, NodeProfile& node);

}  // namespace penstock
