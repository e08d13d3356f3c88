#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures this machine and writes gpu-report.json and gpu-report.html beside this file, or in
# the folder PENSTOCK_REPORT: memory, sockets, our protocols and copies to and from GPUs
# (`penstock bench cluster`), landing and kernels (bin/gpu_bench). What is missing is a row that
# says why it was not measured. Then it runs the tests that need a GPU; without one they fail and
# say why.
#
# Arguments go to GoogleTest (--gtest_filter=…); PENSTOCK_BENCH holds flags for the bench
# ("--pairs 1 --window 0.2" is quick).
here=$(cd "$(dirname "$0")" && pwd) || exit 1
report=${PENSTOCK_REPORT:-$here}/gpu-report
"$here/bin/penstock" version
"$here/bin/gpu_bench" | tee "$report.figures"
# shellcheck disable=SC2086 # flags are words
"$here/bin/penstock" bench cluster $PENSTOCK_BENCH --gpu-figures "$report.figures" \
  --json "$report.json" --html "$report.html" || exit 1
cat "$report.figures" >>"$report.json" && rm "$report.figures"
PENSTOCK_REQUIRE_GPU=1 PENSTOCK_PAGE_LOCK=on exec "$here/tests/cuda_gpu_test" "$@"
