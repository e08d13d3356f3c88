// SPDX-License-Identifier: Apache-2.0
// Stacks of fibers, and the switch from one to another.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace penstock::simulator {

struct Context;

// The stacks on which the fibers of one thread of the operating system run. A stack is never
// unmapped before the end, because the next fiber uses it again. Used on that thread.
class Contexts {
 public:
  // `body(argument)` runs on each new stack, and never returns or throws. `stack_bytes`: of a
  // stack; under the address sanitizer four times as much. `guard_pages`: a page that cannot be
  // written is below each stack. Without it, the stacks are neighbours, and a switch checks that
  // the stack has not overflowed.
  Contexts(size_t stack_bytes, bool guard_pages, void (*body)(void*), void* argument);
  // REQUIRES: runs on the main stack. The frames on all other stacks are lost.
  ~Contexts();
  Contexts(const Contexts&) = delete;
  Contexts& operator=(const Contexts&) = delete;

  Context& main() { return *main_; }  // the stack on which the constructor ran
  // Returns the context that was given back last; if there is none, a new one.
  Context& Take();
  // Gives a context back, which may still run until it switches. When it was taken again and is
  // switched to, its last SwitchTo() returns.
  void GiveBack(Context& context) { idle_.push_back(&context); }
  size_t taken() const { return all_.size() - idle_.size(); }

  // Runs `to`. Returns when another context switches to the calling one. Each context has its own
  // values of the FiberVariables, and its own exceptions in flight: a fiber may wait while it
  // handles one.
  void SwitchTo(Context& to);
  // Gives the FiberVariables the values that they had when this object was made.
  void ResetVariables() { Load(initial_variables_); }

 private:
  static void Begin() noexcept;  // the first function on each new stack
  std::span<std::byte> NewStack();
  std::span<std::byte> Map(size_t bytes);
  void Save(std::vector<std::byte>& values) const;
  void Load(const std::vector<std::byte>& values) const;
  void CheckForOverflow(const Context& context) const;

  const size_t page_bytes_;
  const size_t stack_bytes_;
  const bool guard_pages_;
  void (*const body_)(void*);
  void* const argument_;
  const std::vector<std::span<std::byte>> variables_;
  std::vector<std::byte> initial_variables_;
  std::vector<std::span<std::byte>> mappings_;
  std::span<std::byte> unused_;  // the rest of the newest mapping; without guard pages
  std::vector<std::unique_ptr<Context>> all_;
  std::vector<Context*> idle_;
  const std::unique_ptr<Context> main_;
  Context* running_;
  Context* previous_ = nullptr;  // ran until the last switch
};

}  // namespace penstock::simulator
