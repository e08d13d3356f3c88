// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>

#include "penstock/dataset.h"

namespace penstock::python {

// _core.Iterator; `seed` and `epoch` as MakeInterruptible() takes them. `gpu`: elements come there,
// the next ones before they are asked for; one for which no place is free on it comes in host
// memory.
void BindIterators(pybind11::module_& module);
pybind11::object MakeIterator(const Dataset& dataset, std::optional<uint64_t> seed,
                              std::optional<int64_t> epoch, std::optional<int> gpu);

// Whether elements may lie where other trainers read them too: behind a cross-trainer
// cache, whose segments are mapped for reading only.
bool ReadsWhatOthersRead(const Dataset& dataset);

}  // namespace penstock::python
