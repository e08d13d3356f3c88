// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>

#include "penstock/dataset.h"

namespace penstock::python {

// _core.Iterator; `seed` and `epoch` as MakeInterruptible() takes them.
void BindIterators(pybind11::module_& module);
pybind11::object MakeIterator(const Dataset& dataset, std::optional<uint64_t> seed,
                              std::optional<int64_t> epoch);

// Whether elements may lie where other trainers read them too: behind a cross-trainer
// cache, whose segments are mapped for reading only.
bool ReadsWhatOthersRead(const Dataset& dataset);

}  // namespace penstock::python
