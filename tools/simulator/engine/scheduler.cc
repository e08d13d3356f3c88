// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/engine/scheduler.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "penstock/check.h"

namespace penstock::simulator {
namespace {

// A fleet that starts makes some switches for each fiber before the time advances.
constexpr size_t kMaxSwitchesAtOnce = 100'000;
constexpr size_t kMaxSwitchesAtOnceOfFiber = 100;
constexpr size_t kLastFibers = 8;  // named in the error

std::string NameOf(const Fiber& fiber) {
  const Process& process = *fiber.process;
  return absl::StrCat(process.host(), "/", process.name(), " (process ", process.number(), "), \"",
                      fiber.name, "\" (fiber ", fiber.number, ")");
}

std::string WhyItWaits(const Fiber& fiber) {
  const bool for_lock = fiber.try_lock != nullptr;
  if (fiber.condition == nullptr && !for_lock) {
    return fiber.process->paused() ? "its process is paused" : "can run";
  }
  const char* const what = for_lock ? "waits for a lock" : "waits";
  if (fiber.timer == 0) return absl::StrCat(what, " for ever");
  return absl::StrCat(what, " until ",
                      absl::FormatTime("%Y-%m-%d %H:%M:%E*S", fiber.deadline, absl::UTCTimeZone()));
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, Trace& trace)
    : dice_(options.seed),
      trace_(trace),
      outside_(std::make_shared<Process>("world", "outside", last_process_, dice_.Split())),
      contexts_(
          options.stack_bytes, options.guard_pages,
          [](void* scheduler) { static_cast<Scheduler*>(scheduler)->RunFibers(); }, this),
      runnable_(options.shuffles ? std::optional(dice_.Split()) : std::nullopt) {
  PENSTOCK_CHECK(PresentSimulation() == nullptr);
  SetSimulation(this);
}

Scheduler::~Scheduler() {
  PENSTOCK_CHECK(current_ == nullptr);
  PENSTOCK_CHECK(contexts_.taken() == 0);  // no fiber that has begun is left
  std::exchange(fibers_, {});              // destroying events may use the simulation
  SetSimulation(nullptr);
}

std::shared_ptr<Process> Scheduler::NewProcess(std::string host, std::string name) {
  return std::make_shared<Process>(std::move(host), std::move(name), ++last_process_,
                                   dice_.Split());
}

void Scheduler::At(absl::Time when, const std::shared_ptr<Process>& in, Event event) {
  PENSTOCK_CHECK(in != nullptr);
  Fiber& fiber = fibers_.New("event", /*is_event=*/true, in, std::move(event));
  if (when <= now_) return runnable_.Add(fiber);
  timers_.Set(fiber, when);
}

uint64_t Scheduler::StartIn(const std::shared_ptr<Process>& in, std::string_view name, Event run) {
  PENSTOCK_CHECK(in != nullptr);
  Fiber& fiber = fibers_.New(name, /*is_event=*/false, in, std::move(run));
  runnable_.Add(fiber);
  return fiber.number;
}

std::shared_ptr<Process> Scheduler::current_process() const {
  return current_ == nullptr ? nullptr : current_->process;
}

void Scheduler::Continued(Process& process) {
  for (Fiber* const fiber : std::exchange(paused_, {})) {
    if (fiber->process.get() == &process) {
      runnable_.Add(*fiber);
    } else {
      paused_.push_back(fiber);
    }
  }
}

absl::Status Scheduler::Run(absl::Time until) {
  PENSTOCK_CHECK(current_ == nullptr);
  until_ = until;
  switches_at_now_ = 0;
  last_fibers_.clear();
  SwitchToNext();
  if (last_fibers_.size() < kLastFibers) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat("fibers switch without end, and the time stays ",
                   absl::FormatTime("%Y-%m-%d %H:%M:%E*S", now_, absl::UTCTimeZone()),
                   "; the last were: ", absl::StrJoin(last_fibers_, "; ")));
}

std::vector<std::string> Scheduler::Waiting() const {
  std::vector<std::string> lines;
  for (const Fiber* fiber : fibers_.ByNumber()) {
    const bool is_event_to_come = fiber->is_event && fiber->context == nullptr;
    if (fiber == current_ || is_event_to_come) continue;
    lines.push_back(absl::StrCat(NameOf(*fiber), ": ", WhyItWaits(*fiber)));
  }
  return lines;
}

absl::Time Scheduler::BootTime() {
  const absl::Duration passed = now_ - kBeginOfWorld;
  if (current_ == nullptr) return kBootTimeAtBegin + passed;
  const Process& process = *current_->process;
  return kBootTimeAtBegin + process.boot_skew() + process.Counted(passed);
}

absl::Time Scheduler::WallTime() {
  if (current_ == nullptr) return now_;
  const Process& process = *current_->process;
  return kBeginOfWorld + process.wall_skew() + process.Counted(now_ - kBeginOfWorld);
}

uint64_t Scheduler::RandomNumber() {
  return (current_ == nullptr ? *outside_ : *current_->process).dice().Next();
}

uint64_t Scheduler::ProcessNumber() {
  return current_ == nullptr ? outside_->number() : current_->process->number();
}

uint64_t Scheduler::Start(std::string_view name, Event run) {
  return StartIn(current_ == nullptr ? outside_ : current_->process, name, std::move(run));
}

void Scheduler::Join(uint64_t fiber) {
  while (const Fiber* joined = fibers_.Find(fiber)) Wait(joined, absl::InfiniteFuture());
}

uint64_t Scheduler::CurrentFiber() {
  return current_ == nullptr ? 0 : current_->number;
}

void Scheduler::Wait(const void* condition, absl::Time deadline) {
  PENSTOCK_CHECK(current_ != nullptr);  // only fibers can wait
  waiters_.Add(*current_, condition);
  Block(deadline);
}

void Scheduler::Notify(const void* condition, bool all) {
  while (Fiber* fiber = waiters_.LongestWaiting(condition)) {
    Wake(*fiber);
    if (!all) return;
  }
}

bool Scheduler::AwaitLock(absl::FunctionRef<bool()> try_lock, absl::Time deadline) {
  if (try_lock()) return true;
  PENSTOCK_CHECK(current_ != nullptr);  // only fibers can wait
  Fiber& fiber = *current_;
  fiber.try_lock = &try_lock;
  lock_waiters_.push_back(&fiber);
  Block(deadline);
  // GiveLocks() has given it the lock, or the deadline is over.
  return std::exchange(fiber.try_lock, nullptr) == nullptr || try_lock();
}

void Scheduler::Block(absl::Time deadline) {
  Fiber& fiber = *current_;
  const Process& process = *fiber.process;
  const absl::Time when =
      kBeginOfWorld + process.Passing(deadline - kBootTimeAtBegin - process.boot_skew());
  if (when <= now_) {
    Wake(fiber);
  } else if (when < absl::InfiniteFuture()) {
    timers_.Set(fiber, when);
  }
  SwitchToNext();
}

void Scheduler::Wake(Fiber& fiber) {
  waiters_.Remove(fiber);
  timers_.Cancel(fiber);
  if (fiber.try_lock != nullptr) std::erase(lock_waiters_, &fiber);
  runnable_.Add(fiber);
}

void Scheduler::SwitchToNext() {
  Fiber* const next = Next();
  current_ = next;
  if (next == nullptr) return contexts_.SwitchTo(contexts_.main());
  ++switches_;
  WatchForSpins(*next);
  trace_.Add(now_, "switch", next->process->number(), next->number);
  if (next->context == nullptr) next->context = &contexts_.Take();
  contexts_.SwitchTo(*next->context);
}

Fiber* Scheduler::Next() {
  while (true) {
    GiveLocks();
    if (last_fibers_.size() >= kLastFibers) return nullptr;  // they spin
    while (Fiber* fiber = runnable_.Take()) {
      if (!fiber->process->paused()) return fiber;
      paused_.push_back(fiber);
    }
    if (timers_.empty()) return nullptr;
    if (timers_.first() > until_) {
      now_ = std::max(now_, until_);
      return nullptr;
    }
    now_ = timers_.first();
    switches_at_now_ = 0;
    last_fibers_.clear();
    while (!timers_.empty() && timers_.first() == now_) Wake(timers_.first_fiber());
  }
}

void Scheduler::GiveLocks() {
  for (size_t i = 0; i < lock_waiters_.size();) {
    Fiber& fiber = *lock_waiters_[i];
    if (fiber.process->paused() || !(*fiber.try_lock)()) {
      ++i;
      continue;
    }
    Wake(fiber);  // removes it from lock_waiters_
    fiber.try_lock = nullptr;
  }
}

void Scheduler::WatchForSpins(const Fiber& fiber) {
  const size_t limit = std::max(kMaxSwitchesAtOnce, kMaxSwitchesAtOnceOfFiber * fibers_.size());
  if (++switches_at_now_ + kLastFibers > limit) last_fibers_.push_back(NameOf(fiber));
}

void Scheduler::RunFibers() {
  while (true) {
    Fiber& fiber = *current_;
    contexts_.ResetVariables();
    // A killed process begins no event.
    if (!fiber.is_event || fiber.process->alive()) std::move(fiber.run)();
    fiber.run = nullptr;  // its destructor may wait
    Notify(&fiber, /*all=*/true);
    contexts_.GiveBack(*fiber.context);
    fibers_.End(fiber);
    SwitchToNext();
  }
}

}  // namespace penstock::simulator
