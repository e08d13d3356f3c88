// SPDX-License-Identifier: Apache-2.0
// A partition's elements as its indices count them where consumers are groups: element i
// of the dataset for each member, at the indices i * size … i * size + size - 1. It is made
// once, and they share its block.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "dataplane/dataset/node_iterator.h"
#include "penstock/element.h"
#include "penstock/ids.h"

namespace penstock::worker {

// One thread at a time.
class GroupOutput {
 public:
  // What is done to an element that was made, which nobody shares yet unless its node does;
  // `first`: the first of its indices.
  using Finish = std::function<absl::StatusOr<Element>(Element element, Index first)>;

  // `iterator` stands before element `index` / `size`, and outlives it. REQUIRES: `index` is a
  // multiple of `size`.
  GroupOutput(NodeIterator& iterator, int64_t size, Index index, Finish finish);

  // That of the next index; as NodeIterator::Next().
  absl::StatusOr<std::optional<Element>> Next();
  // As NodeIterator::Skip(), in indices.
  absl::StatusOr<int64_t> Skip(int64_t count);
  // The iterator stands behind what was given out, and no member lacks its element.
  bool whole() const { return index_ % size_ == 0; }

 private:
  void Make();
  void Pass();

  NodeIterator& iterator_;
  const int64_t size_;
  const Finish finish_;
  Index index_;
  // Of the element of which some members have theirs, or may have.
  std::optional<absl::StatusOr<std::optional<Element>>> made_;
};

}  // namespace penstock::worker
