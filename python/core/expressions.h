// SPDX-License-Identifier: Apache-2.0
// Traced functions: Expr, and the operations of penstock/expr.h under Python's names in _core.ops.
#pragma once

#include <pybind11/pybind11.h>

#include "penstock/expr.h"

namespace penstock::python {

// Converts a nest of Python values and Exprs to one Expr.
Expr ExprFrom(const pybind11::object& value);

void BindExpressions(pybind11::module_& module);

}  // namespace penstock::python
