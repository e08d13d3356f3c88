// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

#include "penstock/distribute.h"

namespace penstock::python {

// DistributeOptions out of keyword arguments of these names. ValueError lists the
// names there are, TypeError says which value does not fit.
DistributeOptions DistributeOptionsFrom(const pybind11::dict& arguments);

// Dispatcher and worker as objects, registration, and the options' enumerations.
void BindService(pybind11::module_& module);

}  // namespace penstock::python
