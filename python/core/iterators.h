// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>

#include "penstock/dataset.h"

namespace penstock::python {

// Bind and make _core.Iterator. `seed` and `epoch` are those of MakeInterruptible(). With `gpu`,
// elements are on that device, and the next ones are copied before they are requested. An element
// is in host memory if no place on the device is free for it.
void BindIterators(pybind11::module_& module);
pybind11::object MakeIterator(const Dataset& dataset, std::optional<uint64_t> seed,
                              std::optional<int64_t> epoch, std::optional<int> gpu);

// Returns true if elements may be in memory that other trainers read too. This is so after a
// cross-trainer cache, whose segments are mapped read-only.
bool ReadsWhatOthersRead(const Dataset& dataset);

}  // namespace penstock::python
