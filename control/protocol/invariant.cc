// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/invariant.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "control/sync/simulation.h"

namespace penstock::protocol {
namespace {

thread_local int throwing = 0;
[[maybe_unused]] const FiberVariable kThrowingOfFiber(throwing);

}  // namespace

InvariantsThrow::InvariantsThrow() {
  ++throwing;
}

InvariantsThrow::~InvariantsThrow() {
  --throwing;
}

void OnInvariantBroken(const char* file, int line, const char* condition) {
  const std::string what =
      std::string(file) + ":" + std::to_string(line) + ": does not hold: " + condition;
  if (throwing > 0) throw InvariantBroken(what);
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

}  // namespace penstock::protocol
