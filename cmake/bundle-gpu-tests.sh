#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the tests that need a GPU; without one it fails and says why. Arguments go to
# GoogleTest (--gtest_filter=…).
cd "$(dirname "$0")" || exit 1
bin/penstock version
PENSTOCK_REQUIRE_GPU=1 PENSTOCK_PAGE_LOCK=on exec tests/cuda_gpu_test "$@"
