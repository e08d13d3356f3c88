# SPDX-License-Identifier: Apache-2.0
# What `./run bundle` carries (cmake/bundle.sh): of these the targets that this build
# has, each with the folder it goes to.
set(bin penstock penstock_bench_program digits_make_shards digits_trainer digits_evaluate jpeg_bench gpu_bench)
set(tests cuda_backend_test cuda_gpu_test cuda_nccl_test)
set(lib/penstock penstock_ucx)
set(parts "")
add_custom_target(bundle_parts)
foreach(folder IN ITEMS bin tests lib/penstock)
  foreach(target IN LISTS ${folder})
    if(TARGET ${target})
      string(APPEND parts "${folder} $<TARGET_FILE:${target}>\n")
      add_dependencies(bundle_parts ${target})
    endif()
  endforeach()
endforeach()
file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/bundle-parts.txt" CONTENT "${parts}")
