// SPDX-License-Identifier: Apache-2.0
// Calls of the functions that cases.cc registers.
#pragma once

#include "penstock/expr.h"

namespace penstock::suite {

inline Expr Failing(const Expr& x) {
  return Call("suite.fail_at_some", x);
}
inline Expr Drawing(const Expr& x) {
  return Call("suite.draw_three", x);
}
inline Expr CountingUp(const Expr& x) {
  return Call("suite.count_up", x);
}

}  // namespace penstock::suite
