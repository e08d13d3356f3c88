// SPDX-License-Identifier: Apache-2.0
// Tells what was made in this process from what a parent had made before it
// forked. In a forked child a loan is void: shared segments are not mapped there,
// and their slots belong to the parent.
#pragma once

#include <cstdint>

namespace penstock {

// How often this process and its ancestors have forked, seen from the child: what
// was made under another number is not this process's. Any thread; one load.
uint64_t ForkCount();

// Remembers under which number its owner was made: true in the process that made it.
class ForkGuard {
 public:
  ForkGuard() : made_(ForkCount()) {}
  explicit operator bool() const { return made_ == ForkCount(); }

 private:
  uint64_t made_;
};

}  // namespace penstock
