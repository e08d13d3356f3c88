// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace penstock::python {

// Binds _core.LostConsumerWatch, which penstock/lost_consumers.py uses.
void BindLostConsumers(pybind11::module_& module);

}  // namespace penstock::python
