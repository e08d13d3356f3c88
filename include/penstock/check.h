// SPDX-License-Identifier: Apache-2.0
// For conditions that only a bug in the program can break; never for bad input.
#pragma once

#include <cstdio>
#include <cstdlib>

// Aborts with the condition and its place unless the condition holds.
#define PENSTOCK_CHECK(condition)                                                        \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
