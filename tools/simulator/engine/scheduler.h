// SPDX-License-Identifier: Apache-2.0
// The virtual time, the fibers and the timers of a simulated run. Time advances only when no fiber
// can run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/sync/simulation.h"
#include "tools/simulator/engine/dice.h"
#include "tools/simulator/engine/fiber.h"
#include "tools/simulator/engine/process.h"
#include "tools/simulator/engine/queues.h"
#include "tools/simulator/engine/trace.h"

namespace penstock::simulator {

struct SchedulerOptions {
  uint64_t seed = 1;
  // Chooses at random which fiber that can run is next; otherwise, the one that has waited longest.
  bool shuffles = true;
  size_t stack_bytes = size_t{256} << 10;  // of a fiber
  // Below each stack. A fiber then needs two mappings, of which Linux gives a process 65,530.
  bool guard_pages = true;
};

// The world's time at the begin, and the boot time of a process whose clocks are right.
inline constexpr absl::Time kBeginOfWorld = absl::FromUnixSeconds(1'700'000'000);
inline constexpr absl::Time kBootTimeAtBegin = absl::FromUnixSeconds(3600);

// Used on one thread of the operating system. Installs itself (SetSimulation) while it exists; one
// exists at a time. Code that runs outside of fibers, before or between calls of Run(), may start
// fibers, notify and lock, but not wait. It is in a process of its own, whose number is 1 and whose
// clocks are right.
class Scheduler final : public Simulation {
 public:
  using Event = absl::AnyInvocable<void() &&>;

  Scheduler(const SchedulerOptions& options, Trace& trace);
  // Destroys events that have not begun, and fibers that never ran. REQUIRES: no other fiber is
  // left. A program whose fibers wait for ever must end without this destructor.
  ~Scheduler() override;

  // Makes a process, which the scheduler keeps while it has fibers or somebody holds it.
  std::shared_ptr<Process> NewProcess(std::string host, std::string name);

  // --- For the world and the director ---
  absl::Time now() const { return now_; }  // the world's time
  Dice& dice() { return dice_; }           // for decisions of the world
  Trace& trace() { return trace_; }
  // Runs `event` at `when` on a fiber of `in`. If the event waits, other fibers go on. If `in` was
  // killed before, the event is destroyed instead; while it is paused, the event waits. Events of
  // one time run in any order if the scheduler shuffles; otherwise, in the order of the calls.
  void At(absl::Time when, const std::shared_ptr<Process>& in, Event event);
  // Starts a fiber of `in`.
  uint64_t StartIn(const std::shared_ptr<Process>& in, std::string_view name, Event run);
  // Returns the process of the calling fiber; nullptr outside of fibers.
  std::shared_ptr<Process> current_process() const;
  // Call this after Process::Continue(). A process that was killed while it was paused must be
  // continued too, because otherwise its fibers do not end.
  void Continued(Process& process);

  // Runs fibers and events until the time `until`, or until no event is left and all fibers wait
  // for ever. Then now() is `until`, or the time of the last event. Call it outside of fibers.
  // Aborted, with the names of the fibers that ran last, if 100,000 switches pass without time
  // passing, or, if this is more, 100 for each fiber.
  absl::Status Run(absl::Time until);
  // Returns a line for each fiber that waits: its process, its name, and until when it waits or
  // what else it waits for.
  std::vector<std::string> Waiting() const;
  int64_t switches() const { return switches_; }  // begun events included

  // --- Simulation ---
  absl::Time BootTime() override;
  absl::Time WallTime() override;
  uint64_t RandomNumber() override;
  uint64_t ProcessNumber() override;
  uint64_t Start(std::string_view name, Event run) override;
  void Join(uint64_t fiber) override;
  uint64_t CurrentFiber() override;
  void Wait(const void* condition, absl::Time deadline) override;
  void Notify(const void* condition, bool all) override;
  bool AwaitLock(absl::FunctionRef<bool()> try_lock, absl::Time deadline) override;

 private:
  // Lets others run until the calling fiber is woken, at the latest at the boot time `deadline`.
  void Block(absl::Time deadline);
  void Wake(Fiber& fiber);  // it leaves everything in which it waits, and can run
  void SwitchToNext();
  Fiber* Next();  // nullptr: Run() returns
  // Gives the locks that are free now to fibers that wait for them.
  void GiveLocks();
  // Remembers the fiber if there were nearly too many switches without time passing.
  void WatchForSpins(const Fiber& fiber);
  [[noreturn]] void RunFibers();  // on each stack

  absl::Time now_ = kBeginOfWorld;
  absl::Time until_ = kBeginOfWorld;  // of the present Run()
  Dice dice_;
  Trace& trace_;
  uint64_t last_process_ = 1;
  const std::shared_ptr<Process> outside_;  // of code that is not on a fiber
  Contexts contexts_;
  Fibers fibers_;
  Fiber* current_ = nullptr;
  RunQueue runnable_;
  std::vector<Fiber*> paused_;  // could run if their processes were not paused
  Waiters waiters_;
  Timers timers_;
  std::vector<Fiber*> lock_waiters_;  // the longest waiting first
  int64_t switches_ = 0;
  size_t switches_at_now_ = 0;
  std::vector<std::string> last_fibers_;  // for WatchForSpins()
};

}  // namespace penstock::simulator
