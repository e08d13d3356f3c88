// SPDX-License-Identifier: Apache-2.0
// How C++ literals take the dtype of the tensors they meet.
#pragma once

#include "penstock/dtype.h"
#include "penstock/expr.h"

namespace penstock {

// Makes a literal on either side fit the other side.
void AdaptLiterals(Expr& a, Expr& b);

// A literal as a constant of `dtype`; what is none, or has no such constant, as it is.
Expr AdaptedTo(const Expr& x, DType dtype);

}  // namespace penstock
