// SPDX-License-Identifier: Apache-2.0
// Functions and generators that stay Python. Binds the calls that add them to a dataset, and the
// setting of the processes that run them if this program reads the dataset itself.
#pragma once

#include <pybind11/pybind11.h>

namespace penstock::python {

void BindFunctions(pybind11::module_& module);

}  // namespace penstock::python
