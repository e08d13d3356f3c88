# SPDX-License-Identifier: Apache-2.0
# Files of expr/, as dataplane/dataset/CMakeLists.txt lists them.
set(PENSTOCK_DATASET_EXPR
  expr/arena.cc
  expr/attr_check.cc
  expr/bound_function.cc
  expr/broadcast.cc
  expr/expr.cc
  expr/expr_functions.cc
  expr/op_registry.cc
  expr/op_run.cc
  expr/ops_arithmetic.cc
  expr/ops_call.cc
  expr/ops_cast.cc
  expr/ops_compare.cc
  expr/ops_constant.cc
  expr/ops_reduce.cc
  expr/ops_select.cc
  expr/ops_shape.cc
  expr/ops_string.cc
  expr/random.cc
  expr/trace.cc
)
