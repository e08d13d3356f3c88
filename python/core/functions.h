// SPDX-License-Identifier: Apache-2.0
// Functions and generators that stay Python: how they get into a dataset, and the processes
// that run them where this program reads it itself.
#pragma once

#include <pybind11/pybind11.h>

namespace penstock::python {

void BindFunctions(pybind11::module_& module);

}  // namespace penstock::python
