// SPDX-License-Identifier: Apache-2.0
// Checks conditions of a job that only a bug in the program can break. A dispatcher serves many
// jobs, so there only the affected job ends (Transaction::Guard()). In other processes the process
// ends, as with PENSTOCK_CHECK.
#pragma once

#include <stdexcept>

namespace penstock::protocol {

class InvariantBroken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// While an object of this class exists, a broken condition on the object's thread throws
// InvariantBroken.
class InvariantsThrow {
 public:
  InvariantsThrow();
  ~InvariantsThrow();
  InvariantsThrow(const InvariantsThrow&) = delete;
  InvariantsThrow& operator=(const InvariantsThrow&) = delete;
};

// Throws InvariantBroken, or prints the condition and its place in the code and aborts.
[[noreturn]] void OnInvariantBroken(const char* file, int line, const char* condition);

}  // namespace penstock::protocol

#define PENSTOCK_INVARIANT(condition)                                          \
  do {                                                                         \
    if (!(condition)) [[unlikely]] {                                           \
      ::penstock::protocol::OnInvariantBroken(__FILE__, __LINE__, #condition); \
    }                                                                          \
  } while (false)
