// SPDX-License-Identifier: Apache-2.0
// All roles of a simulated run. Used on fibers of the director.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "tools/simulator/engine/dice.h"
#include "tools/simulator/scenario.h"
#include "tools/simulator/service/consumers.h"
#include "tools/simulator/service/dispatcher.h"
#include "tools/simulator/service/etcd_host.h"
#include "tools/simulator/service/role.h"
#include "tools/simulator/service/trainer.h"
#include "tools/simulator/service/worker.h"
#include "tools/simulator/service/world.h"

namespace penstock::simulator {

class Cluster {
 public:
  explicit Cluster(World& world);

  // Starts as many dispatchers, workers and trainers as the scenario has.
  void Start();
  // Starts one more worker, or one more trainer of the next job that admits any number of them.
  // REQUIRES: `kind` is one of these.
  void Join(RoleKind kind);
  // Returns a running role, drawn among those that `target` admits; nullptr: there is none. Never
  // returns `but`. If the target is a dispatcher without a number, the one that leads, if any does.
  Role* Find(const Target& target, Dice& dice, const Role* but = nullptr);
  // Between these calls there is no room for the journal. The calls are counted.
  void FillDisk();
  void FreeDisk();

  // After the last fault: makes sure that the dispatchers run, and etcd, and a worker, and enough
  // trainers of each job that nobody has read to the end.
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
  // Returns 3 for etcd, 2 for a dispatcher and 1 for other roles: those with a low number end
  // first.
  int EndOf(const Role& role) const;
  // Returns the number of the dispatcher that won the latest election.
  std::optional<int> Leader() const;
  void SetFull(bool full);
  void ForAll(absl::FunctionRef<void(Role&)> visit);
  // Waits until no process is left in the roles for which `counts` is true, for a bounded time.
  bool AwaitEnd(absl::FunctionRef<bool(const Role&)> counts);

  World& world_;
  std::unique_ptr<EtcdHost> etcd_;  // null: there is one dispatcher
  std::vector<std::unique_ptr<Dispatcher>> dispatchers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
  std::vector<std::unique_ptr<Consumers>> consumers_;  // of the jobs in rounds
  size_t joined_ = 0;                                  // calls of Join() for trainers
  int fills_ = 0;                                      // calls of FillDisk() without FreeDisk()
};

}  // namespace penstock::simulator
