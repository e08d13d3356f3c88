# SPDX-License-Identifier: Apache-2.0
# The sources of expr/, for dataplane/dataset/CMakeLists.txt.
set(PENSTOCK_DATASET_EXPR
  expr/attr_check.cc
  expr/axes.cc
  expr/bound_function.cc
  expr/broadcast.cc
  expr/example_wire.cc
  expr/expr.cc
  expr/expr_functions.cc
  expr/expr_shapes.cc
  expr/expr_strings.cc
  expr/image_chain.cc
  expr/image_checks.cc
  expr/image_steps.cc
  expr/map_chain.cc
  expr/moved_values.cc
  expr/op_registry.cc
  expr/op_run.cc
  expr/ops_arithmetic.cc
  expr/ops_bits.cc
  expr/ops_call.cc
  expr/ops_cast.cc
  expr/ops_color.cc
  expr/ops_compare.cc
  expr/ops_constant.cc
  expr/ops_decode.cc
  expr/ops_example.cc
  expr/ops_file.cc
  expr/ops_image.cc
  expr/ops_join.cc
  expr/ops_layout.cc
  expr/ops_math.cc
  expr/ops_matmul.cc
  expr/ops_order.cc
  expr/ops_ragged.cc
  expr/ops_python.cc
  expr/ops_random.cc
  expr/ops_reduce.cc
  expr/ops_regex.cc
  expr/ops_select.cc
  expr/ops_shape.cc
  expr/ops_string.cc
  expr/ops_text.cc
  expr/output_checks.cc
  expr/over_rows.cc
  expr/python_host.cc
  expr/random.cc
  expr/sliced_rows.cc
  expr/trace.cc
)
# These take long to compile, since they are instantiated for each dtype.
set_source_files_properties(expr/ops_math.cc expr/ops_order.cc expr/ops_reduce.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
# These loop over values; GCC 12 vectorises few of the loops at -O2.
set_source_files_properties(expr/ops_arithmetic.cc expr/ops_bits.cc expr/ops_cast.cc
  expr/ops_compare.cc
  PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
