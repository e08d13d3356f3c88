// SPDX-License-Identifier: Apache-2.0
#include "tests/control/protocol/explore.h"

#include <chrono>
#include <deque>

#include "absl/strings/str_cat.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace penstock::protocol {
namespace {

struct Key {
  uint64_t low;   // never 0
  uint64_t high;  // its lowest bit: the state is on the search's stack
};

// A hash set with open addressing; keys are never removed.
class Visited {
 public:
  Visited() : slots_(size_t{1} << 16) {}

  // Returns the slot of `key` (without its mark). `fresh`: the key was inserted by this call.
  size_t Insert(Key key, bool& fresh) {
    if (count_ * 10 >= slots_.size() * 7) Grow();
    const size_t slot = Find(key);
    fresh = slots_[slot].low == 0;
    if (fresh) {
      slots_[slot] = key;
      ++count_;
    }
    return slot;
  }
  bool OnStack(size_t slot) const { return slots_[slot].high & 1; }
  void Mark(Key key, bool on_stack) {
    uint64_t& high = slots_[Find(key)].high;
    high = on_stack ? high | 1 : high & ~uint64_t{1};
  }
  int64_t count() const { return static_cast<int64_t>(count_); }

 private:
  size_t Find(Key key) const {
    size_t slot = key.low & (slots_.size() - 1);
    while (slots_[slot].low != 0 &&
           (slots_[slot].low != key.low || (slots_[slot].high ^ key.high) >> 1))
      slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }
  void Grow() {
    std::vector<Key> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Key& key : old)
      if (key.low) slots_[Find(key)] = key;
  }

  std::vector<Key> slots_;
  size_t count_ = 0;
};

Key KeyOf(const World& world) {
  uint8_t bytes[World::kMaxPacked];
  const XXH128_hash_t hash = XXH3_128bits(bytes, world.Pack(bytes));
  return {hash.low64 | 1u << 31, hash.high64 & ~uint64_t{1}};
}

struct Frame {
  World world;
  Key key;
  Steps steps;
  size_t next = 0;
};

}  // namespace

Explored Explore(const Scene& scene, int64_t max_states) {
  const auto start = std::chrono::steady_clock::now();
  Explored explored;
  Visited visited;
  std::deque<Frame> stack;
  std::string fault;

  auto enter = [&](World&& world, Key key) {
    fault = world.Fault();
    Frame& frame = stack.emplace_back(Frame{std::move(world), key, {}, 0});
    frame.world.Next(frame.steps);
    visited.Mark(key, true);
    if (!fault.empty() || frame.world.Done()) return;
    for (const Step& step : frame.steps)
      if (step.normal()) return;
    fault = "stuck: nobody has a next step, and not all have shown the end";
  };
  bool fresh = false;
  World first(scene);
  const Key first_key = KeyOf(first);
  visited.Insert(first_key, fresh);
  enter(std::move(first), first_key);

  while (!stack.empty() && fault.empty() && visited.count() <= max_states) {
    Frame& frame = stack.back();
    if (frame.next == frame.steps.size()) {
      visited.Mark(frame.key, false);
      stack.pop_back();
      continue;
    }
    World next = frame.world;
    next.Take(frame.steps[frame.next++]);
    ++explored.steps;
    const Key key = KeyOf(next);
    const size_t slot = visited.Insert(key, fresh);
    if (fresh) {
      enter(std::move(next), key);
    } else if (visited.OnStack(slot)) {
      fault = "endless: steps lead back to an earlier state";
    }
  }
  for (const Frame& frame : stack)
    if (frame.next > 0) explored.path.push_back(frame.steps[frame.next - 1]);
  explored.complete = stack.empty();
  explored.fault = fault;
  explored.states = visited.count();
  explored.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return explored;
}

std::string DescribePath(const Scene& scene, const std::vector<Step>& path) {
  World world(scene);
  std::string text = world.ToString();
  for (const Step& step : path) {
    world.Take(step);
    absl::StrAppend(&text, "-- ", ToString(step), "\n", world.ToString());
  }
  return text;
}

}  // namespace penstock::protocol
