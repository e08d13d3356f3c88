// SPDX-License-Identifier: Apache-2.0
// Distinguishes objects of this process from objects that a parent made before it forked. A loan is
// void in a forked child: shared segments are not mapped there, and their slots belong to the
// parent.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)
namespace penstock {

// Returns the number of forks that separate this process from the ancestor that first called this
// function. An object made when the count was different belongs to another process. Any thread; one
// load.
uint64_t ForkCount();

// Remembers the fork count at its construction. Converts to true in the process that made it.
class ForkGuard {
 public:
  ForkGuard() : made_(ForkCount()) {}
  explicit operator bool() const { return made_ == ForkCount(); }

 private:
  uint64_t made_;
};

}  // namespace penstock
#pragma GCC visibility pop
