// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/polling.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "control/sync/simulation.h"
#include "penstock/check.h"

namespace penstock::transfer {
namespace {

using Nanoseconds = EventLoop::Nanoseconds;

// How long a leader spins: many times the duration of a hand-over between two threads that are
// awake.
constexpr Nanoseconds kSpin = 20'000;
// After kWastedSpins wasted spins in a row, the leader sleeps kSleepsBeforeSpin times before it
// spins again.
constexpr int kWastedSpins = 4;
constexpr int kSleepsBeforeSpin = 16;

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

// Destroy a list only while holding no lock, because its destruction may end a loop.
using Loops = std::vector<std::shared_ptr<EventLoop>>;

// Holds the loops of the process, and chooses the waiting thread that polls them.
class Poller {
 public:
  // Returns this process's poller. A forked child has its own, without loops.
  static Poller& OfProcess() {
    static Mutex mu;
    static std::atomic<Poller*> present{nullptr};
    Poller* poller = present.load(std::memory_order_acquire);
    if (poller != nullptr && poller->in_creator_) return *poller;
    MutexLock lock(mu);
    poller = present.load(std::memory_order_relaxed);
    if (poller == nullptr || !poller->in_creator_) {
      poller = new Poller;  // lasts as long as the process
      present.store(poller, std::memory_order_release);
    }
    return *poller;
  }

  absl::Status Add(std::shared_ptr<EventLoop> loop) {
    Loops gone;
    MutexLock lock(mu_);
    if (!wake_fd_) wake_fd_ = Descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!wake_fd_) {
      return absl::UnavailableError(
          absl::StrCat("cannot create a descriptor for wake-ups: errno ", errno));
    }
    loops_.push_back(std::move(loop));
    ++version_;
    if (!leads_) gone.swap(led_);
    return absl::OkStatus();
  }

  void Remove(const EventLoop& loop) {
    Loops gone;
    MutexLock lock(mu_);
    std::erase_if(loops_, [&](const auto& one) { return one.get() == &loop; });
    ++version_;
    if (!leads_) gone.swap(led_);
  }

  // Makes this thread the leader. Returns false if another thread leads or if there is no loop to
  // poll; `waits`, unless it is nullptr, is then a follower until Unfollow().
  bool TryLead(PollingCondition* waits) {
    MutexLock lock(mu_);
    if (leads_ || !HasWork()) {
      if (waits != nullptr) followers_.push_back(waits);
      return false;
    }
    leads_ = true;
    if (led_version_ != version_) {
      PENSTOCK_CHECK(led_.empty());
      led_ = loops_;
      led_version_ = version_;
    }
    return true;
  }
  void StopLeading() {
    Loops gone;
    MutexLock lock(mu_);
    leads_ = false;
    if (led_version_ != version_) gone.swap(led_);
    if (!followers_.empty()) followers_.back()->OfferLead();
  }
  // REQUIRES: TryLead() has returned false for `waits`.
  void Unfollow(PollingCondition* waits) {
    MutexLock lock(mu_);
    followers_.erase(std::find(followers_.begin(), followers_.end(), waits));
  }

  // --- For the leader ---

  // Serves until `notified` differs from `seen`, or until the moment `until`.
  void Lead(const std::atomic<uint64_t>& notified, uint64_t seen, Nanoseconds until) {
    Nanoseconds now = EventLoop::Now();
    Nanoseconds idle_since = now;
    bool spun = false;
    while (true) {
      const bool found = PollAll(now);
      if (found && std::exchange(spun, false)) wasted_spins_ = 0;
      if (notified.load(std::memory_order_seq_cst) != seen) return;
      now = EventLoop::Now();
      if (now >= until) return;
      if (found) {
        idle_since = now;
      } else if (wasted_spins_ < kWastedSpins && now - idle_since < kSpin) {
        spun = true;
        Relax();
      } else {
        NoteSleep(std::exchange(spun, false));
        Sleep(notified, seen, until, now);
        idle_since = now = EventLoop::Now();
      }
    }
  }
  bool PollAll(Nanoseconds now) {
    bool found = false;
    for (const std::shared_ptr<EventLoop>& loop : led_) {
      if (!loop->idle()) found = loop->Poll(now) || found;
    }
    return found;
  }

  // Call this on any thread after changing the counter that was passed to Lead() as `notified`.
  void WakeLeader() {
    if (asleep_.exchange(false, std::memory_order_seq_cst)) {
      [[maybe_unused]] const int written = ::eventfd_write(wake_fd_.get(), 1);
    }
  }

 private:
  Poller() = default;

  bool HasWork() const REQUIRES(mu_) {
    return std::any_of(loops_.begin(), loops_.end(),
                       [](const auto& loop) { return !loop->idle(); });
  }

  // Decides whether the leader spins before the next sleep.
  void NoteSleep(bool spun) {
    if (spun) {
      ++wasted_spins_;
      sleeps_ = 0;
    } else if (++sleeps_ == kSleepsBeforeSpin) {
      wasted_spins_ = kWastedSpins - 1;  // load may have changed
    }
  }

  void Sleep(const std::atomic<uint64_t>& notified, uint64_t seen, Nanoseconds until,
             Nanoseconds now) {
    ready_.assign(1, {wake_fd_.get(), POLLIN, 0});
    asleep_at_.clear();
    bool quiet = true;
    for (const std::shared_ptr<EventLoop>& loop : led_) {
      if (loop->idle()) continue;  // its own thread accepts a new link
      quiet = loop->BeginSleep();
      if (!quiet) break;
      asleep_at_.push_back(loop.get());
      ready_.push_back({loop->descriptor(), POLLIN, 0});
    }
    if (quiet) {
      asleep_.store(true, std::memory_order_seq_cst);
      if (notified.load(std::memory_order_seq_cst) == seen) {
        const Nanoseconds left = until - now;
        const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
        ::ppoll(ready_.data(), ready_.size(), &timeout, nullptr);
      }
      asleep_.store(false, std::memory_order_seq_cst);
      if ((ready_[0].revents & POLLIN) != 0) {
        eventfd_t wakeups;
        [[maybe_unused]] const int read = ::eventfd_read(wake_fd_.get(), &wakeups);
      }
    }
    for (EventLoop* loop : asleep_at_) loop->EndSleep();
  }

  const ForkGuard in_creator_;
  Descriptor wake_fd_;  // wakes the leader; constant once there is a loop
  std::atomic<bool> asleep_{false};

  // Used only by the leader.
  Loops led_;  // empty between two leaders if it is out of date
  std::vector<EventLoop*> asleep_at_;
  std::vector<pollfd> ready_;
  int wasted_spins_ = 0;  // in a row
  int sleeps_ = 0;        // since the last wasted spin

  Mutex mu_;
  bool leads_ GUARDED_BY(mu_) = false;  // a thread leads
  Loops loops_ GUARDED_BY(mu_);
  uint64_t version_ GUARDED_BY(mu_) = 0;  // of loops_
  uint64_t led_version_ GUARDED_BY(mu_) = 0;
  std::vector<PollingCondition*> followers_ GUARDED_BY(mu_);  // one entry for each thread
};

// --- PollingCondition ------------------------------------------------------------------

void PollingCondition::WaitFor(MutexLock& lock, std::chrono::nanoseconds timeout) {
  if (PresentSimulation() != nullptr) return WaitInSimulation(lock, timeout);
  const uint64_t seen = notified_.load(std::memory_order_relaxed);
  lock.UnlockUnchecked();
  const Nanoseconds until = EventLoop::Now() + timeout.count();
  Poller& poller = Poller::OfProcess();
  if (poller.TryLead(this)) {
    polling_.fetch_add(1, std::memory_order_seq_cst);
    poller.Lead(notified_, seen, until);
    polling_.fetch_sub(1, std::memory_order_seq_cst);
    poller.StopLeading();
  } else {
    Sleep(seen, until);
    poller.Unfollow(this);
  }
  lock.LockUnchecked();
}

// There are no loops to poll. Without an end to the wait for a notification, a missing notification
// stops the simulation, and is found.
void PollingCondition::WaitInSimulation(MutexLock& lock, std::chrono::nanoseconds timeout) {
  if (timeout >= kMaxWait) return WaitPassive(lock);
  const uint64_t seen = notified_.load(std::memory_order_relaxed);
  lock.UnlockUnchecked();
  Sleep(seen, EventLoop::Now() + timeout.count());
  lock.LockUnchecked();
}

void PollingCondition::WaitPassive(MutexLock& lock) {
  const uint64_t seen = notified_.load(std::memory_order_relaxed);
  lock.UnlockUnchecked();
  Sleep(seen, EventLoop::kNever);
  lock.LockUnchecked();
}

void PollingCondition::Sleep(uint64_t seen, Nanoseconds until) {
  sleeping_.fetch_add(1, std::memory_order_seq_cst);
  {
    MutexLock lock(mu_);
    const auto over = [&]() REQUIRES(mu_) {
      return lead_offered_ || notified_.load(std::memory_order_seq_cst) != seen;
    };
    if (until == EventLoop::kNever) {
      woken_.Wait(lock, [&] { return notified_.load(std::memory_order_seq_cst) != seen; });
    } else {
      woken_.WaitFor(lock, absl::Nanoseconds(until - EventLoop::Now()), over);
      lead_offered_ = false;
    }
  }
  sleeping_.fetch_sub(1, std::memory_order_seq_cst);
}

void PollingCondition::NotifyAll() {
  notified_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst) > 0) {
    { MutexLock lock(mu_); }  // a thread about to wait has checked, or sees the change
    woken_.NotifyAll();
  }
  if (polling_.load(std::memory_order_seq_cst) > 0) Poller::OfProcess().WakeLeader();
}

void PollingCondition::OfferLead() {
  {
    MutexLock lock(mu_);
    lead_offered_ = true;
  }
  woken_.NotifyAll();
}

void PollTransports() {
  Poller& poller = Poller::OfProcess();
  if (!poller.TryLead(nullptr)) return;
  poller.PollAll(EventLoop::Now());
  poller.StopLeading();
}

absl::Status AddPolledLoop(std::shared_ptr<EventLoop> loop) {
  return Poller::OfProcess().Add(std::move(loop));
}

void RemovePolledLoop(const EventLoop& loop) {
  Poller::OfProcess().Remove(loop);
}

}  // namespace penstock::transfer
