// SPDX-License-Identifier: Apache-2.0
#include "control/stub/this_process.h"

#include <unistd.h>

#include <cstdint>

#include "control/sync/mutex.h"
#include "control/sync/random.h"
#include "control/sync/simulation.h"

namespace penstock::control {

Incarnation ThisProcess() {
  if (Simulation* simulation = PresentSimulation()) {
    return Incarnation(simulation->ProcessNumber());
  }
  static Mutex mu;
  static pid_t of = 0;
  static uint64_t number = 0;
  MutexLock lock(mu);
  if (of != getpid()) {
    of = getpid();
    number = RandomId();
  }
  return Incarnation(number);
}

const char* ThisRelease() {
  return PENSTOCK_VERSION;
}

}  // namespace penstock::control
