// SPDX-License-Identifier: Apache-2.0
// Draws the faults of a scenario, and does them.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "tools/simulator/engine/dice.h"
#include "tools/simulator/scenario.h"
#include "tools/simulator/service/cluster.h"
#include "tools/simulator/service/world.h"

namespace penstock::simulator {

// Used on fibers of the director. Each pause, cut and absence ends at `calm` at the latest. A fault
// whose target does not run is left out.
class Faults {
 public:
  Faults(World& world, Cluster& cluster)
      : world_(world), cluster_(cluster), dice_(world.scheduler.dice().Split()) {}

  void Begin();

 private:
  // Does a fault of the rule after a drawn time, and again if the rule repeats.
  void Await(const FaultRule& rule);
  void Do(const Fault& fault);
  void Do(const Fault& fault, Role& role);
  void Crash(const Fault& fault, Role& role);
  void Pause(const Fault& fault, Role& role);
  void Separate(const Fault& fault, Role& role);
  void FillDisk(const Fault& fault);
  void Finalise();
  void JumpClock(const Fault& fault, Role& role);
  // Draws a time that ends at `calm` at the latest.
  absl::Duration Draw(const Span& span);
  void BringBack(const Fault& fault, Role& role);

  World& world_;
  Cluster& cluster_;
  Dice dice_;
};

}  // namespace penstock::simulator
