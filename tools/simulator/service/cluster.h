// SPDX-License-Identifier: Apache-2.0
// All roles of a simulated run. Used on fibers of the director.
#pragma once

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "tools/simulator/engine/dice.h"
#include "tools/simulator/scenario.h"
#include "tools/simulator/service/dispatcher.h"
#include "tools/simulator/service/role.h"
#include "tools/simulator/service/trainer.h"
#include "tools/simulator/service/worker.h"
#include "tools/simulator/service/world.h"

namespace penstock::simulator {

class Cluster {
 public:
  explicit Cluster(World& world) : world_(world), dispatcher_(world) {}

  // Starts the dispatcher, and as many workers and trainers as the scenario has.
  void Start();
  // Starts one more. REQUIRES: `kind` is a worker or a trainer.
  void Join(RoleKind kind);
  // Returns a running role, drawn among those that `target` admits; nullptr: there is none. Never
  // returns `but`.
  Role* Find(const Target& target, Dice& dice, const Role* but = nullptr);
  Dispatcher& dispatcher() { return dispatcher_; }

  // After the last fault: makes sure that the dispatcher runs, and a worker and a trainer if there
  // are elements left to read.
  void Mend();
  // Returns whether a trainer reads, is about to end, or will read again.
  bool AnyReads() const;
  // Ends all processes, as SIGTERM does; the second one as SIGKILL does. Return false if some do
  // not end.
  bool Stop();
  bool CrashAll();

 private:
  void ForAll(absl::FunctionRef<void(Role&)> visit);
  // Waits until no process is left in the roles for which `counts` is true, for a bounded time.
  bool AwaitEnd(absl::FunctionRef<bool(const Role&)> counts);

  World& world_;
  Dispatcher dispatcher_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
};

}  // namespace penstock::simulator
