// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace penstock::python {

// _core.Dataset: penstock/dataset.h and sources.h, with what penstock/dataset.py of
// the package makes of Python's arguments. Functions take and give Exprs.
void BindDatasets(pybind11::module_& module);

}  // namespace penstock::python
