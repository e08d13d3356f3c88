// SPDX-License-Identifier: Apache-2.0
// What each node of a running dataset did: elements, bytes, seconds at work,
// seconds spent waiting for others. Counts are exact, but lag by some elements
// while a node is being read; seconds at work are estimated from calls that are timed now and then,
// since reading the clock costs as much as a quick node.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "dataplane/dataset/graph.h"
#include "dataplane/dataset/node_iterator.h"
#include "penstock/iterator.h"

namespace penstock {

// One node's counts, of all iterators built for it. Any thread; relaxed.
struct NodeProfile {
  std::string name;                    // as errors have it; never changes
  std::atomic<int64_t> elements{0};    // given out, errors in an element's place included
  std::atomic<int64_t> bytes{0};       // of their blocks; 0 where they went into a batch's rows
  std::atomic<int64_t> busy_ns{0};     // of all threads in this node's own code, an estimate
  std::atomic<int64_t> waiting_ns{0};  // of those who wanted its next element
  // As last tuned (or given); 0: the node has none.
  std::atomic<int64_t> parallelism{0};  // calls at a time
  std::atomic<int64_t> ahead{0};        // elements that it may hold ready or in work
};

// Of all nodes of one dataset. Outlives the iterators that count into it, which
// may be of several partitions.
class Profile {
 public:
  explicit Profile(NodePtr root);

  // By the node's number (VisitNodes).
  NodeProfile& node(int number) { return nodes_[static_cast<size_t>(number)]; }
  // In topological order, inputs before their users.
  IteratorStats Stats() const;

 private:
  const NodePtr root_;
  std::deque<NodeProfile> nodes_;
};

// Times what its thread does while it lives and books it to `node`, without
// what scopes inside it book for themselves. Where no node's iterator is at work
// on this thread it begins to time, if `weight` is not 0: so many calls this one
// stands for. Inside one it follows that: timed or not. nullptr: does nothing.
class ProfileScope {
 public:
  ProfileScope(NodeProfile* node, int64_t weight);
  ~ProfileScope();
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  friend class ProfileWait;
  using Clock = std::chrono::steady_clock;

  NodeProfile* node_;  // nullptr: not timed
  bool outermost_ = false;
  int64_t outer_inside_ns_ = 0;
  Clock::time_point begin_;
};

// Books the time of its life as waiting for `node`'s next element, and not as
// anybody's work. nullptr: does nothing.
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

// The same iterator, counted and timed. Where it runs out of memory or threads, an error that names
// the node ends reading: it comes again whenever it is asked (catch_exhausted.h).
std::unique_ptr<NodeIterator> Profiled(std::unique_ptr<NodeIterator> iterator, NodeProfile& node);

}  // namespace penstock
