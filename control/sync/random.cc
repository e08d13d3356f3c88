// SPDX-License-Identifier: Apache-2.0
#include "control/sync/random.h"

#include <sys/random.h>

#include "control/sync/simulation.h"
#include "penstock/check.h"

namespace penstock {

uint64_t RandomNumber() {
  if (Simulation* simulation = PresentSimulation()) return simulation->RandomNumber();
  uint64_t bits = 0;
  // For so few bytes, getrandom(2) returns all of them without an error, even if a signal arrives.
  PENSTOCK_CHECK(::getrandom(&bits, sizeof(bits), 0) == sizeof(bits));
  return bits;
}

uint64_t RandomId() {
  while (true) {
    if (const uint64_t id = RandomNumber(); id != 0) return id;
  }
}

double RandomBetween(double low, double high) {
  constexpr double kUnit = 1.0 / (uint64_t{1} << 53);  // a double has 53 significant bits
  return low + (high - low) * kUnit * static_cast<double>(RandomNumber() >> 11);
}

}  // namespace penstock
