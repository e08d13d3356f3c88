// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include "penstock/distribute.h"

namespace penstock::python {

// Makes DistributeOptions from keyword arguments of the same names. ValueError lists the known
// names; TypeError names the value that does not fit.
DistributeOptions DistributeOptionsFrom(const pybind11::dict& arguments);

// Binds the dispatcher, the worker, registration, and the enumerations of the options.
void BindService(pybind11::module_& module);

}  // namespace penstock::python
