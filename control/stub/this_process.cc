// SPDX-License-Identifier: Apache-2.0
#include "control/stub/this_process.h"

#include <unistd.h>

#include <cstdint>
#include <random>

#include "control/sync/mutex.h"

namespace penstock::control {

Incarnation ThisProcess() {
  static Mutex mu;
  static pid_t of = 0;
  static uint64_t number = 0;
  MutexLock lock(mu);
  if (of != getpid()) {
    std::random_device random;
    of = getpid();
    do {
      number = (uint64_t{random()} << 32) | random();
    } while (number == 0);
  }
  return Incarnation(number);
}

}  // namespace penstock::control
