// SPDX-License-Identifier: Apache-2.0
// The leaves of an element as Python objects, on the element's own memory.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <mutex>
#include <utility>

#include "dataplane/memory/fork_guard.h"
#include "penstock/device_element.h"
#include "penstock/element.h"
#include "penstock/tensor.h"

namespace penstock::python {

// An element, in host memory or on a device. All objects that use its memory share it: tensors,
// their buffers and DLPack capsules. When the last of them is destroyed, on any thread and with or
// without the GIL, the slot or the place on the device is returned.
class Held {
 public:
  Held(Element element, bool writable) : element_(std::move(element)), writable_(writable) {}
  explicit Held(DeviceElement element) : on_device_(std::move(element)), writable_(true) {}
  ~Held();
  Held(const Held&) = delete;

  const Element& element() const { return element_; }
  // Empty if the element is in host memory.
  const DeviceElement& on_device() const { return on_device_; }
  // Work queued on `stream` after this call sees the values. They stay valid for all work that is
  // queued before this object is destroyed. Any thread.
  absl::Status ReadyOn(void* stream);
  // To be used instead of ReadyOn() if the consumer orders its work itself and its streams are not
  // known. Any thread.
  void ReadyByOthers();
  bool writable() const { return writable_; }
  // False in a forked child, where the memory may not be mapped.
  bool usable() const { return static_cast<bool>(in_creator_); }

 private:
  Element element_;
  DeviceElement on_device_;
  std::mutex mu_;
  bool unknown_readers_ = false;  // guarded by mu_
  const bool writable_;
  const ForkGuard in_creator_;
};

// Returns the leaves of `element` in the order of its spec. A leaf is a Tensor; a tuple of the
// parts of a ragged or sparse tensor, (values, row splits…) or (values, indices, dense shape); or
// None if it is missing. `writable`: whether no other code reads the block.
pybind11::tuple LeavesOf(Element element, bool writable);
// Same for an element on a device. The values are on the device, except strings. The other parts
// are in host memory.
pybind11::tuple LeavesOf(DeviceElement element);
// Same, only for a spec of dense numbers: NumPy arrays on the element's memory, and NumPy scalars
// for tensors without dimensions.
pybind11::tuple ArraysOf(Element element, bool writable);

void BindTensors(pybind11::module_& module);

}  // namespace penstock::python
