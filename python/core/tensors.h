// SPDX-License-Identifier: Apache-2.0
// The leaves of an element as Python's objects, on the element's own memory.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "dataplane/memory/forked.h"
#include "penstock/element.h"
#include "penstock/tensor.h"

namespace penstock::python {

// An element, held by whatever sees its memory: tensors, their buffers and DLPack
// capsules. The last to go returns the loan, on any thread, with or without the GIL.
class Held {
 public:
  Held(Element element, bool writable) : element_(std::move(element)), writable_(writable) {}
  ~Held();
  Held(const Held&) = delete;

  const Element& element() const { return element_; }
  bool writable() const { return writable_; }
  // False in a forked child, where the memory may not be mapped.
  bool usable() const { return static_cast<bool>(made_here_); }

 private:
  Element element_;
  const bool writable_;
  const MadeHere made_here_;
};

// The leaves of `element` in the order of its spec: Tensor; for ragged and sparse
// ones a tuple of their parts, (values, row splits…), (values, indices, dense shape);
// None for one left out. `writable`: nobody else reads the block.
pybind11::tuple LeavesOf(Element element, bool writable);

void BindTensors(pybind11::module_& module);

}  // namespace penstock::python
