// SPDX-License-Identifier: Apache-2.0
#include "control/sync/simulation.h"

#include <vector>

namespace penstock {
namespace {

Simulation* present = nullptr;

std::vector<std::span<std::byte>>& FiberVariables() {
  static std::vector<std::span<std::byte>>& fiber_variables =
      *new std::vector<std::span<std::byte>>;
  return fiber_variables;
}

}  // namespace

Simulation* PresentSimulation() {
  return present;
}

void SetSimulation(Simulation* simulation) {
  present = simulation;
}

FiberVariable::FiberVariable(void* variable, size_t bytes) {
  FiberVariables().emplace_back(static_cast<std::byte*>(variable), bytes);
}

std::span<const std::span<std::byte>> FiberVariable::All() {
  return FiberVariables();
}

}  // namespace penstock
