// SPDX-License-Identifier: Apache-2.0
// The leaves of an element as Python's objects, on the element's own memory.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <utility>

#include "control/sync/mutex.h"
#include "dataplane/memory/fork_guard.h"
#include "penstock/device_element.h"
#include "penstock/element.h"
#include "penstock/tensor.h"

namespace penstock::python {

// An element, in host memory or on a device, held by whatever sees its memory: tensors,
// their buffers and DLPack capsules. The last to go returns the loan, or the place on the
// device, on any thread, with or without the GIL.
class Held {
 public:
  Held(Element element, bool writable) : element_(std::move(element)), writable_(writable) {}
  explicit Held(DeviceElement element) : on_device_(std::move(element)), writable_(true) {}
  ~Held();
  Held(const Held&) = delete;

  const Element& element() const { return element_; }
  // Empty if it is in host memory.
  const DeviceElement& on_device() const { return on_device_; }
  // What `stream` is asked for from now on sees the values, and they stay until it is done
  // with what it is asked for until this goes. Any thread.
  absl::Status ReadyOn(void* stream);
  // Somebody else sees to the former; who reads is not known. Any thread.
  void ReadyByOthers();
  bool writable() const { return writable_; }
  // False in a forked child, where the memory may not be mapped.
  bool usable() const { return static_cast<bool>(in_creator_); }

 private:
  Element element_;
  DeviceElement on_device_;
  Mutex mu_;
  bool unknown_readers_ GUARDED_BY(mu_) = false;
  const bool writable_;
  const ForkGuard in_creator_;
};

// The leaves of `element` in the order of its spec: Tensor; for ragged and sparse
// ones a tuple of their parts, (values, row splits…), (values, indices, dense shape);
// None for one left out. `writable`: nobody else reads the block.
pybind11::tuple LeavesOf(Element element, bool writable);
// The same of one on a device: so are all values but strings and the parts beside values.
pybind11::tuple LeavesOf(DeviceElement element);
// The same for a spec of dense numbers alone: NumPy's arrays on the element's memory, and
// its scalars for tensors without dimensions.
pybind11::tuple ArraysOf(Element element, bool writable);

void BindTensors(pybind11::module_& module);

}  // namespace penstock::python
