// SPDX-License-Identifier: Apache-2.0
// Functions and generators that stay Python: adds them to a dataset, and sets the processes that
// run them where this program reads the dataset itself.
#pragma once

#include <pybind11/pybind11.h>

namespace penstock::python {

void BindFunctions(pybind11::module_& module);

}  // namespace penstock::python
