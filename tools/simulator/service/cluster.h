// SPDX-License-Identifier: Apache-2.0
// All roles of a simulated run. Used on fibers of the director.
#pragma once

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "tools/simulator/engine/dice.h"
#include "tools/simulator/scenario.h"
#include "tools/simulator/service/consumers.h"
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
  // Starts one more worker, or one more trainer of the next job that admits any number of them.
  // REQUIRES: `kind` is one of these.
  void Join(RoleKind kind);
  // Returns a running role, drawn among those that `target` admits; nullptr: there is none. Never
  // returns `but`.
  Role* Find(const Target& target, Dice& dice, const Role* but = nullptr);
  Dispatcher& dispatcher() { return dispatcher_; }

  // After the last fault: makes sure that the dispatcher runs, and a worker, and enough trainers of
  // each job that nobody has read to the end.
  void Mend();
  // Returns whether a trainer reads, is about to end, or will read again.
  bool AnyReads() const;
  // Ends all processes, as SIGTERM does; the second one as SIGKILL does. Return false if some do
  // not end.
  bool Stop();
  bool CrashAll();

 private:
  void StartTrainers(size_t job);
  // Starts a trainer of a job, and returns it.
  Trainer& AddTrainer(const Seat& seat);
  // Starts what a job needs so that it is read to its end.
  void MendJob(size_t job);
  void ForAll(absl::FunctionRef<void(Role&)> visit);
  // Waits until no process is left in the roles for which `counts` is true, for a bounded time.
  bool AwaitEnd(absl::FunctionRef<bool(const Role&)> counts);

  World& world_;
  Dispatcher dispatcher_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::vector<std::unique_ptr<Consumers>> consumers_;  // of the jobs in rounds
  size_t joined_ = 0;                                  // calls of Join() for trainers
};

}  // namespace penstock::simulator
