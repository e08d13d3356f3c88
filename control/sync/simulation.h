// SPDX-License-Identifier: Apache-2.0
// Replaces time, waiting, threads and random numbers of the whole process, so that the service runs
// on one thread under a seed. A Thread of the service is then a fiber of the simulation: it runs
// until it waits. tools/simulator contains the only implementation outside tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace penstock {

// All calls come from one thread of the operating system. "The process" is the simulated process to
// which the calling fiber belongs.
class Simulation {
 public:
  virtual ~Simulation() = default;

  virtual absl::Time BootTime() = 0;  // of the process
  virtual absl::Time WallTime() = 0;  // of the process
  virtual uint64_t RandomNumber() = 0;
  // Returns a number that differs between processes, and between the lives of one; never 0.
  virtual uint64_t ProcessNumber() = 0;

  // Starts a fiber in the process, and returns its number, which is never 0 and never used again.
  virtual uint64_t Start(std::string_view name, absl::AnyInvocable<void() &&> run) = 0;
  // Waits until the fiber has ended.
  virtual void Join(uint64_t fiber) = 0;
  virtual uint64_t CurrentFiber() = 0;  // 0: none

  // Waits for Notify(condition), at the latest until the boot time `deadline`. May return earlier.
  virtual void Wait(const void* condition, absl::Time deadline) = 0;
  virtual void Notify(const void* condition, bool all) = 0;
  // Waits until `try_lock` returns true, at the latest until the boot time `deadline`. Returns
  // whether it did. Another fiber holds the lock, and waits for something else.
  virtual bool AwaitLock(absl::FunctionRef<bool()> try_lock, absl::Time deadline) = 0;
};

// Returns the simulation of this process; nullptr: none.
Simulation* PresentSimulation();
// Begins a simulation, or ends it (nullptr). REQUIRES: the process has no second thread.
void SetSimulation(Simulation* simulation);

// Declares that each fiber has its own value of a thread_local variable, because the variable may
// keep a value while its thread waits. Make a constant of this class beside the variable:
//
//   thread_local Timing timing;
//   const FiberVariable kOfFiber(timing);
class FiberVariable {
 public:
  template <class T>
  explicit FiberVariable(T& variable) : FiberVariable(&variable, sizeof(T)) {
    static_assert(std::is_trivially_copyable_v<T>, "a simulation copies its bytes");
  }

  // The bytes of all such variables of the main thread. Each fiber begins with the bytes that these
  // have when the simulation begins.
  static std::span<const std::span<std::byte>> All();

 private:
  FiberVariable(void* variable, size_t bytes);
};

}  // namespace penstock
