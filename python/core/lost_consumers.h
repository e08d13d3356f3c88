// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace penstock::python {

// _core.LostConsumerWatch, on which penstock/lost_consumers.py stands.
void BindLostConsumers(pybind11::module_& module);

}  // namespace penstock::python
