// SPDX-License-Identifier: Apache-2.0
// For what cannot happen unless the program is wrong; never for bad input.
#pragma once

#include <cstdio>
#include <cstdlib>

// Aborts naming the condition and its place unless it holds.
#define PENSTOCK_CHECK(condition)                                                        \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
