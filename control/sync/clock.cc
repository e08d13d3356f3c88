// SPDX-License-Identifier: Apache-2.0
#include "control/sync/clock.h"

#include <ctime>

#include "absl/time/clock.h"
#include "control/sync/simulation.h"

namespace penstock {
namespace {

std::chrono::nanoseconds Read(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

absl::Time BootTime() {
  if (Simulation* simulation = PresentSimulation()) return simulation->BootTime();
  return absl::UnixEpoch() + absl::FromChrono(Read(CLOCK_BOOTTIME));
}

absl::Time WallTime() {
  if (Simulation* simulation = PresentSimulation()) return simulation->WallTime();
  return absl::Now();
}

absl::Time BootTimeAt(absl::Time wall) {
  return BootTime() + (wall - WallTime());
}

SteadyClock::time_point SteadyClock::now() noexcept {
  if (Simulation* simulation = PresentSimulation()) {
    return time_point(absl::ToChronoNanoseconds(simulation->BootTime() - absl::UnixEpoch()));
  }
  return time_point(Read(CLOCK_MONOTONIC));
}

std::chrono::nanoseconds ThreadCpuTime() {
  if (PresentSimulation() != nullptr) return {};  // code takes no time
  return Read(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace penstock
