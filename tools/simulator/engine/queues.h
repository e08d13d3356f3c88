// SPDX-License-Identifier: Apache-2.0
// The fibers of a scheduler, and the queues in which they wait. Nothing here depends on the
// addresses of fibers and conditions, because these differ between two runs of a seed.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "tools/simulator/engine/dice.h"
#include "tools/simulator/engine/fiber.h"
#include "tools/simulator/engine/process.h"

namespace penstock::simulator {

struct Fiber {
  uint64_t number = 0;  // 0: the record belongs to no fiber
  std::string name;
  std::shared_ptr<Process> process;
  absl::AnyInvocable<void() &&> run;
  bool is_event = false;
  Context* context = nullptr;  // nullptr: it has not begun

  // --- While it waits ---
  const void* condition = nullptr;  // a member of Waiters
  Fiber* before = nullptr;          // waits longer for the condition
  Fiber* after = nullptr;
  const absl::FunctionRef<bool()>* try_lock = nullptr;  // waits for a lock
  absl::Time deadline;                                  // of its timer; the world's time
  uint64_t timer = 0;                                   // in Timers; 0: none
};

// The fibers that have not ended. Fibers keep their addresses until they end.
class Fibers {
 public:
  Fiber& New(std::string_view name, bool is_event, std::shared_ptr<Process> process,
             absl::AnyInvocable<void() &&> run);
  void End(Fiber& fiber);
  Fiber* Find(uint64_t number) const;  // no event; nullptr: it has ended
  std::vector<const Fiber*> ByNumber() const;
  size_t size() const { return records_.size() - free_.size(); }

 private:
  std::deque<Fiber> records_;
  std::vector<Fiber*> free_;
  absl::flat_hash_map<uint64_t, Fiber*> by_number_;  // no events
  uint64_t last_number_ = 0;
};

// The fibers that can run.
class RunQueue {
 public:
  // `dice`: choose the next fiber; without, it is the one that was added first.
  explicit RunQueue(std::optional<Dice> dice) : dice_(dice) {}
  void Add(Fiber& fiber) { fibers_.push_back(&fiber); }
  Fiber* Take();  // nullptr: none

 private:
  std::optional<Dice> dice_;
  std::deque<Fiber*> fibers_;
};

// The fibers that wait for a condition.
class Waiters {
 public:
  void Add(Fiber& fiber, const void* condition);
  void Remove(Fiber& fiber);                           // if it is a member
  Fiber* LongestWaiting(const void* condition) const;  // nullptr: none

 private:
  struct List {
    Fiber* first = nullptr;
    Fiber* last = nullptr;
  };
  absl::flat_hash_map<const void*, List> lists_;  // none is empty
};

// The times at which fibers continue or begin.
class Timers {
 public:
  void Set(Fiber& fiber, absl::Time when);  // REQUIRES: the fiber has no timer
  void Cancel(Fiber& fiber);                // if it has one
  bool empty() const { return timers_.empty(); }
  absl::Time first() const { return timers_.begin()->first.first; }  // REQUIRES: not empty
  Fiber& first_fiber() const { return *timers_.begin()->second; }    // REQUIRES: not empty

 private:
  absl::btree_map<std::pair<absl::Time, uint64_t>, Fiber*> timers_;  // by time and age
  uint64_t last_timer_ = 0;
};

}  // namespace penstock::simulator
