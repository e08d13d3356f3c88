// SPDX-License-Identifier: Apache-2.0
// A place in the simulated cluster in which processes live one after another: a dispatcher, a
// worker, a trainer or etcd. Each has a host of its own, with the same name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tools/simulator/service/world.h"

namespace penstock::simulator {

enum class Order : uint8_t {
  kNone,
  kLeave,  // as SIGTERM
  kDrain,  // a worker: gives its partitions away first
};

// One process of a role, from its start until its main fiber returns. Used on fibers.
class Life {
 public:
  Life(Scheduler& scheduler, std::shared_ptr<Process> process)
      : scheduler_(scheduler), process_(std::move(process)) {}

  const std::shared_ptr<Process>& process() const { return process_; }
  bool alive() const { return process_->alive(); }  // was not killed
  Order order() const { return order_; }
  bool finished() const { return finished_; }
  // Returns whether the process shall end, because of an order, because it was killed, or because
  // it has finished.
  bool ends() const { return order_ != Order::kNone || !alive() || finished_; }

  // Tells the process to end. The first order counts.
  void Tell(Order order);
  void Kill();

  // --- For fibers of the process ---
  // The program has nothing more to do; its other fibers shall end.
  void Finish();
  // Wait until the process shall end; the second one for at most `time`. Return ends().
  bool AwaitEnd() { return AwaitEnd(absl::InfiniteDuration()); }
  bool AwaitEnd(absl::Duration time);
  // Waits until the process was killed or has finished, for at most `time`.
  void AwaitKillOrFinish(absl::Duration time);

 private:
  Scheduler& scheduler_;
  const std::shared_ptr<Process> process_;
  Order order_ = Order::kNone;
  bool finished_ = false;
};

// The present life and its predecessors. Methods are called on fibers of the director, unless the
// comment says otherwise.
class Role {
 public:
  Role(World& world, std::string name) : world_(world), name_(std::move(name)) {}
  Role(const Role&) = delete;
  Role& operator=(const Role&) = delete;
  virtual ~Role() = default;  // REQUIRES: no life is left

  const std::string& name() const { return name_; }
  // Returns whether a process lives here that was not told to end.
  bool running() const { return life_ != nullptr && !life_->ends(); }
  bool starts_again() const { return start_due_ != 0; }
  // Returns whether a process lives here, even if it is about to end, or will be started.
  bool busy() const { return life_ != nullptr || starts_again(); }
  bool any_left() const { return lives_left_ > 0; }  // killed ones end later
  Process* process() const { return life_ == nullptr ? nullptr : life_->process().get(); }

  void Start();  // REQUIRES: !running()
  // Starts a new life after `time`, if none runs then. A later call replaces an earlier one.
  void StartAfter(absl::Duration time);
  void Retire();  // no life begins any more
  void Tell(Order order);
  void Crash();  // as SIGKILL; the disk and the peers see it as such
  void Pause();
  void Continue();

 protected:
  World& world() const { return world_; }
  int lives() const { return lives_; }  // begun so far

  // The program, on the main fiber of a new process. Returns OK if it did what it was told or had
  // nothing left to do; otherwise why it ended by itself. Then it is started again.
  virtual absl::Status Main(Life& life) = 0;
  // The process was killed; its main fiber may still run.
  virtual void OnKilled() {}

 private:
  void Run(const std::shared_ptr<Life>& life);

  World& world_;
  const std::string name_;
  std::shared_ptr<Life> life_;  // nullptr: none runs or ends in the usual way
  int lives_ = 0;
  int lives_left_ = 0;
  uint64_t start_due_ = 0;  // number of the latest StartAfter(); 0: none is due
  uint64_t starts_ = 0;     // calls of StartAfter()
  bool retired_ = false;
  int64_t drift_ppb_ = 0;  // of the host's clocks
};

}  // namespace penstock::simulator
