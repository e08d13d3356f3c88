// SPDX-License-Identifier: Apache-2.0
// The leaves of an element, wherever their memory is: in the element's block, or in memory that
// something else keeps alive, such as a mapped file.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "penstock/element.h"
#include "penstock/tensor.h"

namespace penstock {

// Input for a function, which only reads it. One thread at a time.
class ElementViews {
 public:
  // Adds all leaves of `element`, and keeps the element.
  void Add(Element element) {
    bytes_ += static_cast<int64_t>(element.block().size());
    for (size_t i = 0; i < element.size(); ++i) leaves_.push_back(element.tensor(i));
    elements_.push_back(std::move(element));
  }
  // Adds one dense leaf, whose dims and values live as long as `keeper`.
  void Add(const Tensor& leaf, std::shared_ptr<const void> keeper) {
    bytes_ += static_cast<int64_t>(leaf.byte_count());
    leaves_.push_back(leaf);
    keepers_.push_back(std::move(keeper));
  }
  // Drops all leaves, and the objects that keep them alive.
  void Clear() {
    leaves_.clear();
    elements_.clear();
    keepers_.clear();
    bytes_ = 0;
  }

  absl::Span<const Tensor> leaves() const { return leaves_; }
  int64_t bytes() const { return bytes_; }  // of blocks, and of leaves without a block

 private:
  absl::InlinedVector<Tensor, 4> leaves_;
  absl::InlinedVector<Element, 1> elements_;
  absl::InlinedVector<std::shared_ptr<const void>, 2> keepers_;
  int64_t bytes_ = 0;
};

// Views of all leaves of an element, as inputs of a function. The element must outlive them.
class ElementTensors {
 public:
  explicit ElementTensors(const Element& element) {
    tensors_.reserve(element.size());
    for (size_t i = 0; i < element.size(); ++i) tensors_.push_back(element.tensor(i));
  }
  operator absl::Span<const Tensor>() const { return tensors_; }  // NOLINT: implicit by intent

 private:
  absl::InlinedVector<Tensor, 4> tensors_;
};

}  // namespace penstock
