// SPDX-License-Identifier: Apache-2.0
// Returns a partition's elements by index, in a read by consumer groups. Element i of the dataset
// has the indices i * size … i * size + size - 1, one for each member of a group. The element is
// made once, and the members share its block.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/statusor.h"
#include "dataplane/dataset/engine/node_iterator.h"
#include "penstock/element.h"
#include "penstock/ids.h"

namespace penstock::worker {

// One thread at a time.
class GroupOutput {
 public:
  // Processes an element that was just made. Nothing shares the element yet, except perhaps the
  // node that made it. `first`: the element's first index.
  using Finish = std::function<absl::StatusOr<Element>(Element element, Index first)>;

  // `iterator` is positioned before element `index` / `size`, and must outlive this object.
  // REQUIRES: `index` is a multiple of `size`.
  GroupOutput(NodeIterator& iterator, int64_t size, Index index, Finish finish);

  // Same as NodeIterator::Next(), but for the next index.
  absl::StatusOr<std::optional<Element>> Next();
  // Same as NodeIterator::Skip(), but counts indices.
  absl::StatusOr<int64_t> Skip(int64_t count);
  // Returns true if every member has the current element. The iterator's position is then just
  // after the returned elements.
  bool whole() const { return index_ % size_ == 0; }

 private:
  void Make();
  void Pass();

  NodeIterator& iterator_;
  const int64_t size_;
  const Finish finish_;
  Index index_;
  // The current element, which some members have not received yet.
  std::optional<absl::StatusOr<std::optional<Element>>> made_;
};

}  // namespace penstock::worker
