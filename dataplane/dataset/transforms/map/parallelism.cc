// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/map/parallelism.h"

#include <sys/resource.h>

#include <chrono>
#include <cmath>

#include "control/sync/clock.h"
#include "dataplane/dataset/transforms/map/thread_pool.h"
#include "penstock/dataset.h"

namespace penstock {
namespace {

// The limit on calls at a time if calls wait for something other than a core, unless the node sets
// its own limit.
constexpr int kMostTunedThreads = 64;
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

int CallsOnCores(int64_t calls, int threads) {
  const int64_t allowed = threads > 0 ? threads : Cores();
  const int64_t wanted = calls > 0 ? calls : allowed;
  return static_cast<int>(std::clamp<int64_t>(wanted, 1, 1024));
}

}  // namespace

Parallelism::Parallelism(int64_t calls, int threads, std::optional<int> most, NodeProfile* profile)
    : cores_(CallsOnCores(calls, threads)),
      most_(most.has_value() ? std::max(cores_, *most) : kMostTunedThreads),
      autotune_(calls == kAutotune),
      grows_(autotune_ && threads == 0),
      profile_(profile),
      calls_(cores_) {
  if (profile_ != nullptr) profile_->parallelism = cores_;
}

absl::Status Parallelism::Timed(absl::FunctionRef<absl::Status()> call) {
  const int64_t mean = mean_ns_.load(std::memory_order_relaxed);
  std::optional<Waiting> waiting;
  if (grows_ && mean > kWorthAskingNs) waiting.emplace();
  const auto begin = SteadyClock::now();
  absl::Status status = call();
  const int64_t took = std::chrono::nanoseconds(SteadyClock::now() - begin).count();
  mean_ns_.store(mean + (took - mean) / 4, std::memory_order_relaxed);
  if (waiting.has_value()) MakeUpForWaiting(waiting->Share(took));
  return status;
}

void Parallelism::MakeUpForWaiting(double share_waited) {
  const double before = share_waited_.load(std::memory_order_relaxed);
  const double now = before + (share_waited - before) / 8;
  share_waited_.store(now, std::memory_order_relaxed);
  const double wanted = std::min<double>(cores_ / std::max(1 - now, 1e-3), most_);
  const int calls = std::max(cores_, static_cast<int>(std::lround(wanted)));
  // Small changes are noise and would start threads for nothing.
  if (std::abs(calls - this->calls()) * 4 < this->calls()) return;
  ThreadPool::OfProcess().Grow(calls);
  calls_.store(calls, std::memory_order_relaxed);
  if (profile_ != nullptr) profile_->parallelism = calls;
}

}  // namespace penstock
