// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace penstock::python {

// Binds _core.Dataset: penstock/dataset.h and sources.h. The package's penstock/dataset.py prepares
// the arguments. Functions take and return Exprs.
void BindDatasets(pybind11::module_& module);

}  // namespace penstock::python
