#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures the GPU (bin/gpu_bench, to gpu-bench.json beside this file where it can be
# written) and runs the tests that need one; without one it fails and says why.
# Arguments go to GoogleTest (--gtest_filter=…).
cd "$(dirname "$0")" || exit 1
bin/penstock version
bin/gpu_bench | tee gpu-bench.json
PENSTOCK_REQUIRE_GPU=1 PENSTOCK_PAGE_LOCK=on exec tests/cuda_gpu_test "$@"
