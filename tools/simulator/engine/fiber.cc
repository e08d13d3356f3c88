// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/engine/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "control/sync/simulation.h"
#include "penstock/check.h"

#if defined(__SANITIZE_ADDRESS__)
#define PENSTOCK_FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PENSTOCK_FIBER_ASAN 1
#endif
#endif
#ifdef PENSTOCK_FIBER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// SwitchStacks() saves the registers that a function must preserve, and the stack pointer, and
// loads those of another context. PrepareStack() makes a context that begins in `begin`.
#if defined(__x86_64__)
#define PENSTOCK_FIBER_ASSEMBLY 1
asm(R"(
.pushsection .text
.globl penstock_simulator_switch
.hidden penstock_simulator_switch
.type penstock_simulator_switch, @function
penstock_simulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size penstock_simulator_switch, . - penstock_simulator_switch
.popsection
)");
#elif defined(__aarch64__)
#define PENSTOCK_FIBER_ASSEMBLY 1
asm(R"(
.pushsection .text
.globl penstock_simulator_switch
.hidden penstock_simulator_switch
.type penstock_simulator_switch, %function
penstock_simulator_switch:
  stp x29, x30, [sp, #-160]!
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x27, x28, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #16]
  ldp x21, x22, [sp, #32]
  ldp x23, x24, [sp, #48]
  ldp x25, x26, [sp, #64]
  ldp x27, x28, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  ldp x29, x30, [sp], #160
  ret
.size penstock_simulator_switch, . - penstock_simulator_switch
.popsection
)");
#else
#include <ucontext.h>
#endif

namespace penstock::simulator {

struct Context {
  std::span<std::byte> stack;  // of the main context: known once another one has run
  std::vector<std::byte> variables;
  void* fake_stack = nullptr;  // of the address sanitizer
#ifdef PENSTOCK_FIBER_ASSEMBLY
  void* stack_pointer = nullptr;
#else
  ucontext_t registers;
#endif
};

namespace {

constexpr size_t kStacksOfSlab = 64;
// At the low end of a stack. It is zero until the stack overflows, and reading it costs no memory.
constexpr size_t kCheckedBytes = 64;

Contexts* beginning = nullptr;  // for Contexts::Begin()

#ifdef PENSTOCK_FIBER_ASSEMBLY
extern "C" void penstock_simulator_switch(void** saved, void* loaded);

void SwitchStacks(Context& from, Context& to) {
  penstock_simulator_switch(&from.stack_pointer, to.stack_pointer);
}

// Backtraces end at the zeros that are left above and in place of the registers.
void PrepareStack(Context& context, void (*begin)()) {
#if defined(__x86_64__)
  constexpr size_t kWords = 8, kReturnAddress = 6;  // `begin` finds its own return address above
#else
  constexpr size_t kWords = 20, kReturnAddress = 1;
#endif
  auto* const top = reinterpret_cast<uintptr_t*>(context.stack.data() + context.stack.size());
  uintptr_t* const words = std::fill_n(top - kWords, kWords, 0) - kWords;
  words[kReturnAddress] = reinterpret_cast<uintptr_t>(begin);
  context.stack_pointer = words;
}
#else
void SwitchStacks(Context& from, Context& to) {
  swapcontext(&from.registers, &to.registers);
}

void PrepareStack(Context& context, void (*begin)()) {
  getcontext(&context.registers);
  context.registers.uc_stack.ss_sp = context.stack.data();
  context.registers.uc_stack.ss_size = context.stack.size();
  makecontext(&context.registers, begin, 0);
}
#endif

// The sanitizer must know which stack is in use.
void BeforeSwitch([[maybe_unused]] Context& from, [[maybe_unused]] const Context& to) {
#ifdef PENSTOCK_FIBER_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack.data(), to.stack.size());
#endif
}

void AfterSwitch([[maybe_unused]] Context& from, [[maybe_unused]] const Context& to) {
#ifdef PENSTOCK_FIBER_ASAN
  const void* stack = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(to.fake_stack, &stack, &bytes);
  from.stack = {static_cast<std::byte*>(const_cast<void*>(stack)), bytes};
#endif
}

// Earlier stacks at the same address may have left their marks.
void ForgetMarks([[maybe_unused]] std::span<std::byte> memory) {
#ifdef PENSTOCK_FIBER_ASAN
  __asan_unpoison_memory_region(memory.data(), memory.size());
#endif
}

size_t StackBytes(size_t wanted, size_t page_bytes) {
#ifdef PENSTOCK_FIBER_ASAN
  wanted *= 4;
#endif
  return (wanted + page_bytes - 1) / page_bytes * page_bytes;
}

// The exceptions that a thread has thrown and not handled yet are two variables of the C++ library.
std::span<std::byte> ExceptionsInFlight() {
  constexpr size_t kBytes = sizeof(void*) + sizeof(unsigned int);  // caught, number of uncaught
  return {reinterpret_cast<std::byte*>(abi::__cxa_get_globals()), kBytes};
}

std::vector<std::span<std::byte>> VariablesOfFibers() {
  const std::span<const std::span<std::byte>> declared = FiberVariable::All();
  std::vector<std::span<std::byte>> variables(declared.begin(), declared.end());
  variables.push_back(ExceptionsInFlight());
  return variables;
}

}  // namespace

Contexts::Contexts(size_t stack_bytes, bool guard_pages, void (*body)(void*), void* argument)
    : page_bytes_(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
      stack_bytes_(StackBytes(stack_bytes, page_bytes_)),
      guard_pages_(guard_pages),
      body_(body),
      argument_(argument),
      variables_(VariablesOfFibers()),
      main_(std::make_unique<Context>()),
      running_(main_.get()) {
  for (const std::span<std::byte> variable : variables_) {
    initial_variables_.insert(initial_variables_.end(), variable.begin(), variable.end());
  }
  // The main stack may be inside a handler, but a new fiber is not.
  std::fill_n(initial_variables_.rbegin(), variables_.back().size(), std::byte{0});
  main_->variables = initial_variables_;
}

Contexts::~Contexts() {
  PENSTOCK_CHECK(running_ == main_.get());
  for (const std::span<std::byte> mapping : mappings_) munmap(mapping.data(), mapping.size());
}

Context& Contexts::Take() {
  if (!idle_.empty()) {
    Context& context = *idle_.back();
    idle_.pop_back();
    return context;
  }
  Context& context = *all_.emplace_back(std::make_unique<Context>());
  context.stack = NewStack();
  context.variables = initial_variables_;
  PrepareStack(context, &Contexts::Begin);
  return context;
}

void Contexts::SwitchTo(Context& to) {
  if (&to == running_) return;
  Context& from = *running_;
  CheckForOverflow(from);
  Save(from.variables);
  Load(to.variables);
  previous_ = &from;
  running_ = &to;
  beginning = this;
  BeforeSwitch(from, to);
  SwitchStacks(from, to);
  AfterSwitch(*previous_, from);
}

// noexcept: an exception that leaves the body ends the program, as it does on a thread.
void Contexts::Begin() noexcept {
  Contexts& contexts = *beginning;
  AfterSwitch(*contexts.previous_, *contexts.running_);
  contexts.body_(contexts.argument_);
  PENSTOCK_CHECK(false);  // the body never returns
}

std::span<std::byte> Contexts::NewStack() {
  if (guard_pages_) {
    const std::span<std::byte> mapping = Map(page_bytes_ + stack_bytes_);
    PENSTOCK_CHECK(mprotect(mapping.data(), page_bytes_, PROT_NONE) == 0);
    return mapping.subspan(page_bytes_);
  }
  if (unused_.empty()) unused_ = Map(kStacksOfSlab * stack_bytes_);
  const std::span<std::byte> stack = unused_.first(stack_bytes_);
  unused_ = unused_.subspan(stack_bytes_);
  return stack;
}

// Without huge pages, because most of a stack is never used.
std::span<std::byte> Contexts::Map(size_t bytes) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  PENSTOCK_CHECK(memory != MAP_FAILED);
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  const std::span<std::byte> mapping = {static_cast<std::byte*>(memory), bytes};
  ForgetMarks(mapping);
  return mappings_.emplace_back(mapping);
}

void Contexts::Save(std::vector<std::byte>& values) const {
  std::byte* to = values.data();
  for (const std::span<std::byte> variable : variables_) {
    std::memcpy(to, variable.data(), variable.size());
    to += variable.size();
  }
}

void Contexts::Load(const std::vector<std::byte>& values) const {
  const std::byte* from = values.data();
  for (const std::span<std::byte> variable : variables_) {
    std::memcpy(variable.data(), from, variable.size());
    from += variable.size();
  }
}

void Contexts::CheckForOverflow(const Context& context) const {
  if (guard_pages_ || &context == main_.get()) return;
  static constexpr std::byte kZeros[kCheckedBytes] = {};
  // A stack of a fiber has overflowed. Give the scheduler more stack_bytes.
  PENSTOCK_CHECK(std::memcmp(context.stack.data(), kZeros, kCheckedBytes) == 0);
}

}  // namespace penstock::simulator
