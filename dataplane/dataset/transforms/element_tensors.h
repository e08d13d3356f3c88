// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "penstock/element.h"
#include "penstock/tensor.h"

namespace penstock {

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
