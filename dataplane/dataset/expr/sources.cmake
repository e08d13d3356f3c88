# SPDX-License-Identifier: Apache-2.0
# The sources of expr/, for dataplane/dataset/CMakeLists.txt.
set(PENSTOCK_DATASET_EXPR
  expr/attr_check.cc
  expr/axes.cc
  expr/bound_function.cc
  expr/broadcast.cc
  expr/expr.cc
  expr/expr_functions.cc
  expr/expr_shapes.cc
  expr/expr_strings.cc
  expr/image_chain.cc
  expr/image_steps.cc
  expr/map_chain.cc
  expr/op_registry.cc
  expr/op_run.cc
  expr/output_checks.cc
  expr/over_rows.cc
  expr/python_host.cc
  expr/random.cc
  expr/sliced_rows.cc
  expr/trace.cc
  expr/ops/arithmetic.cc
  expr/ops/bits.cc
  expr/ops/call.cc
  expr/ops/cast.cc
  expr/ops/color.cc
  expr/ops/compare.cc
  expr/ops/constant.cc
  expr/ops/decode.cc
  expr/ops/example.cc
  expr/ops/example_wire.cc
  expr/ops/file.cc
  expr/ops/image.cc
  expr/ops/image_checks.cc
  expr/ops/join.cc
  expr/ops/layout.cc
  expr/ops/math.cc
  expr/ops/matmul.cc
  expr/ops/moved_values.cc
  expr/ops/order.cc
  expr/ops/python.cc
  expr/ops/ragged.cc
  expr/ops/random.cc
  expr/ops/reduce.cc
  expr/ops/regex.cc
  expr/ops/select.cc
  expr/ops/shape.cc
  expr/ops/string.cc
  expr/ops/text.cc
)
# These take long to compile, since they are instantiated for each dtype.
set_source_files_properties(expr/ops/math.cc expr/ops/order.cc expr/ops/reduce.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
# These loop over values; GCC 12 vectorises few of the loops at -O2.
set_source_files_properties(expr/ops/arithmetic.cc expr/ops/bits.cc expr/ops/cast.cc
  expr/ops/compare.cc
  PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
