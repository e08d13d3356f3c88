// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/map/map_step.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

#include "absl/algorithm/container.h"
#include "control/sync/clock.h"
#include "dataplane/dataset/engine/profile.h"
#include "dataplane/dataset/expr/op_registry.h"
#include "dataplane/dataset/expr/python_host.h"
#include "dataplane/dataset/transforms/map/thread_pool.h"
#include "dataplane/memory/catch_exhausted.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// One in this many calls is timed, because reading the clock costs as much as a short call.
constexpr int64_t kTimed = 8;
// Shorter calls are not checked for waiting, because the check takes a microsecond.
constexpr int64_t kWorthAskingNs = 100'000;

// Measures how long this thread waited voluntarily, as opposed to losing its core to other threads.
class Waiting {
 public:
  Waiting() : switches_(Switches()), cpu_ns_(ThreadCpuTime().count()) {}
  // Returns the fraction of `wall_ns`, the wall time since construction, that was spent waiting.
  double Share(int64_t wall_ns) const {
    if (Switches() == switches_) return 0;
    return 1 - std::min(1.0, static_cast<double>(ThreadCpuTime().count() - cpu_ns_) /
                                 static_cast<double>(wall_ns));
  }

 private:
  static int64_t Switches() {
    rusage usage;
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  }

  const int64_t switches_;
  const int64_t cpu_ns_;
};

bool CallsPython(const FunctionDef& function) {
  return absl::c_any_of(function.ops, [](const OpDef& op) { return op.op == kPythonCall; });
}

}  // namespace

absl::StatusOr<std::unique_ptr<MapStep>> MapStep::Create(const BuildSite& site) {
  auto step = std::unique_ptr<MapStep>(new MapStep(site));
  const auto& function = site.attr<std::shared_ptr<const FunctionDef>>("function");
  ASSIGN_OR_RETURN(step->function_, site.Bind(function));
  const int64_t calls = site.attr<int64_t>("num_parallel_calls");
  step->cores_ = Parallelism(calls, site.threads());
  step->parallelism_ = step->cores_;
  // More calls do not shorten the wait for a Python process.
  step->most_ = CallsPython(*function) ? std::max(step->cores_, site.python()->CallsAtOnce())
                                       : kMostTunedThreads;
  step->autotune_ = calls == kAutotune;
  step->grows_ = step->autotune_ && site.threads() == 0;
  if (step->profile_ != nullptr) step->profile_->parallelism = step->cores_;
  return step;
}

absl::Status MapStep::Run(absl::Span<const Tensor> input, int64_t number, ResultSink& sink) {
  RandomKey random = random_;
  random.element = static_cast<uint64_t>(number);
  if (number % kTimed == 0) return TimedCall(input, random, sink);
  ProfileScope scope(profile_, 0);
  return Call(input, random, sink);
}

absl::Status MapStep::TimedCall(absl::Span<const Tensor> input, const RandomKey& random,
                                ResultSink& sink) {
  ProfileScope scope(profile_, kTimed);
  const int64_t mean = mean_ns_.load(std::memory_order_relaxed);
  std::optional<Waiting> waiting;
  if (grows_ && mean > kWorthAskingNs) waiting.emplace();
  const auto begin = SteadyClock::now();
  absl::Status status = Call(input, random, sink);
  const int64_t took = std::chrono::nanoseconds(SteadyClock::now() - begin).count();
  mean_ns_.store(mean + (took - mean) / 4, std::memory_order_relaxed);
  if (waiting.has_value()) MakeUpForWaiting(waiting->Share(took));
  return status;
}

void MapStep::MakeUpForWaiting(double share_waited) {
  const double before = share_waited_.load(std::memory_order_relaxed);
  const double now = before + (share_waited - before) / 8;
  share_waited_.store(now, std::memory_order_relaxed);
  const double wanted = std::min<double>(cores_ / std::max(1 - now, 1e-3), most_);
  const int parallelism = std::max(cores_, static_cast<int>(std::lround(wanted)));
  // Small changes are noise and would start threads for nothing.
  if (std::abs(parallelism - this->parallelism()) * 4 < this->parallelism()) return;
  ThreadPool::OfProcess().Grow(parallelism);
  parallelism_.store(parallelism, std::memory_order_relaxed);
  if (profile_ != nullptr) profile_->parallelism = parallelism;
}

absl::Status MapStep::Call(absl::Span<const Tensor> input, const RandomKey& random,
                           ResultSink& sink) const {
  const absl::Status run = OfElement(
      CatchExhausted("its function", [&] { return function_->Run(input, random, sink); }));
  return run.ok() ? run : Annotate(run, "in ", name_, ", element ", random.element);
}

}  // namespace penstock
