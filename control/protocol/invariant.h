// SPDX-License-Identifier: Apache-2.0
// What must hold of a job unless the program is wrong. A dispatcher serves many: there one of which
// a rule does not hold ends by itself (Transaction::Guard()), and the others go on. Elsewhere the
// process ends, as by PENSTOCK_CHECK.
#pragma once

#include <stdexcept>

namespace penstock::protocol {

class InvariantBroken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// While one lives, what does not hold on this thread throws InvariantBroken.
class InvariantsThrow {
 public:
  InvariantsThrow();
  ~InvariantsThrow();
  InvariantsThrow(const InvariantsThrow&) = delete;
  InvariantsThrow& operator=(const InvariantsThrow&) = delete;
};

// Throws, or names the condition and its place and aborts.
[[noreturn]] void OnInvariantBroken(const char* file, int line, const char* condition);

}  // namespace penstock::protocol

#define PENSTOCK_INVARIANT(condition)                                          \
  do {                                                                         \
    if (!(condition)) [[unlikely]] {                                           \
      ::penstock::protocol::OnInvariantBroken(__FILE__, __LINE__, #condition); \
    }                                                                          \
  } while (false)
