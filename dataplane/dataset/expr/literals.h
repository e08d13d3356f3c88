// SPDX-License-Identifier: Apache-2.0
// C++ literals take the dtype of the tensors they meet.
#pragma once

#include "penstock/dtype.h"
#include "penstock/expr.h"

namespace penstock {

// Makes a literal on either side fit the other side.
void AdaptLiterals(Expr& a, Expr& b);

// Returns a literal as a constant of `dtype`. Returns `x` unchanged if it is not a literal, or if
// `dtype` has no such constant.
Expr AdaptedTo(const Expr& x, DType dtype);

}  // namespace penstock
