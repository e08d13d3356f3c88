// SPDX-License-Identifier: Apache-2.0
// Checks conditions that only a bug in the program can break. Never use it for bad input.
#pragma once

#include <cstdio>
#include <cstdlib>

// If the condition does not hold, prints the condition and its place in the code, and aborts.
#define PENSTOCK_CHECK(condition)                                                        \
  do {                                                                                   \
    if (!(condition)) [[unlikely]] {                                                     \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)
