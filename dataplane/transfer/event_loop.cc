// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/event_loop.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "include/status_macros.h"

namespace penstock::transfer {
namespace {

using Nanoseconds = EventLoop::Nanoseconds;

// How long the loop's thread waits for another thread to poll again. If no thread polls, new work
// waits at most this long.
constexpr Nanoseconds kBackoff = 2 * EventLoop::kMillisecond;
// The maximum delay of work whose wake-up is lost for any reason.
constexpr Nanoseconds kMaxSleep = 1'000 * EventLoop::kMillisecond;
// How often descriptors are checked while links are busy.
constexpr Nanoseconds kDescriptorsEvery = EventLoop::kMillisecond;

// While an object of this class exists, all signals are blocked on its thread, and on threads that
// this thread starts, because signals are for the program's other threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

Nanoseconds EventLoop::Now() {
  return SteadyClock::now().time_since_epoch().count();
}

absl::Status EventLoop::Start(const char* name) {
  wake_fd_ = Descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake_fd_) {
    return absl::UnavailableError(
        absl::StrCat("cannot create a descriptor for wake-ups: errno ", errno));
  }
  const SignalsBlocked blocked;
  ASSIGN_OR_RETURN(thread_,
                   StartThread(absl::StrCat("serving links (", name, ")"), [this] { Run(); }));
  pthread_setname_np(thread_.native_handle(), name);
  return absl::OkStatus();
}

void EventLoop::Stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  SignalThread();
  thread_.join();
  MutexLock lock(serving_mu_);
  ended_ = true;
}

// --- Threads that poll ------------------------------------------------------------------

bool EventLoop::Poll(Nanoseconds now) {
  polls_.fetch_add(1, std::memory_order_seq_cst);
  // Wakes the loop's thread from a long sleep, so that it learns of this poll and backs off.
  Nanoseconds looks_at = looks_at_.load(std::memory_order_seq_cst);
  if (looks_at > now + kBackoff && looks_at_.compare_exchange_strong(looks_at, 0)) SignalThread();
  if (!serving_mu_.try_lock()) return false;
  MutexLock lock(serving_mu_, std::adopt_lock);
  Disarm(Sleeper::kOwnThread);
  return ServeLocked(now, /*may_look=*/true);
}

bool EventLoop::BeginSleep() {
  MutexLock lock(serving_mu_);
  if (ended_) return true;  // nothing more will arrive
  sleeper_ = Sleeper::kPoller;
  SetSleeps(true);  // again, because the effect of the earlier call may be used up
  if (!ServeLocked(Now(), /*may_look=*/true)) return true;
  Disarm(Sleeper::kPoller);
  return false;
}

void EventLoop::EndSleep() {
  MutexLock lock(serving_mu_);
  Disarm(Sleeper::kPoller);
  descriptors_ready_ = true;
}

void EventLoop::Disarm(Sleeper sleeper) {
  if (sleeper_ != sleeper) return;
  sleeper_ = Sleeper::kNobody;
  if (!ended_) SetSleeps(false);
}

bool EventLoop::ServeLocked(Nanoseconds now, bool may_look) {
  if (ended_) return false;
  const bool descriptors = may_look && (descriptors_ready_ || now >= descriptors_at_);
  if (descriptors) {
    descriptors_ready_ = false;
    descriptors_at_ = now + kDescriptorsEvery;
  }
  server_ = CurrentThread();
  const bool found = Serve(now, descriptors);
  server_ = ThreadId();
  return found;
}

// --- The loop's own thread ---------------------------------------------------------

void EventLoop::Wake() {
  woken_.store(true, std::memory_order_seq_cst);
  // Either the thread that is serving polls again, or the loop's thread checks within kBackoff.
  if (server_.load() == CurrentThread()) return;
  if (looks_at_.exchange(0, std::memory_order_seq_cst) != 0) SignalThread();
}

void EventLoop::WakeAt(Nanoseconds moment) {
  // If the thread is awake, or wakes earlier, it checks the deadlines before it sleeps.
  if (looks_at_.load(std::memory_order_seq_cst) > moment + EventLoop::kMillisecond) Wake();
}

void EventLoop::SignalThread() {
  [[maybe_unused]] const int written = ::eventfd_write(wake_fd_.get(), 1);
}

void EventLoop::Run() {
  uint64_t polls = 0;
  while (!stopping_) {
    woken_.store(false, std::memory_order_seq_cst);  // first, so that no later Wake() is lost
    bool found;
    {
      MutexLock lock(serving_mu_);
      // If a polling thread sleeps on the descriptors, only that thread reads them, because each
      // event is reported once.
      found = ServeLocked(Now(), sleeper_ != Sleeper::kPoller);
    }
    const uint64_t now_polls = polls_.load(std::memory_order_seq_cst);
    const bool polled = polls != now_polls;
    polls = now_polls;
    if (!found || polled) Sleep(polled);
  }
}

// Sleeps. If other threads have polled, they serve new work, so the sleep is short.
void EventLoop::Sleep(bool polled) {
  const uint64_t polls = polls_.load(std::memory_order_seq_cst);
  // Stored first, so that a thread that sets a deadline from now on wakes this thread.
  looks_at_.store(kNever, std::memory_order_seq_cst);
  const Nanoseconds now = Now();
  Nanoseconds until = now + (polled ? kBackoff : kMaxSleep);
  bool watches = false;
  {
    MutexLock lock(serving_mu_);
    until = std::min(until, NextDeadline());
    looks_at_.store(std::max<Nanoseconds>(until, 1), std::memory_order_seq_cst);
    // A thread that polls after this sees how long this thread sleeps, and wakes it.
    const bool alone = !polled && polls_.load(std::memory_order_seq_cst) == polls;
    if (!polled && !alone) until = now;
    watches = alone && sleeper_ == Sleeper::kNobody;
    if (watches && !FallAsleep()) until = now;
  }
  if (until > now && !woken_.load(std::memory_order_seq_cst)) {
    pollfd ready[2] = {{wake_fd_.get(), POLLIN, 0}, {descriptor(), POLLIN, 0}};
    const Nanoseconds left = until - now;
    const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
    ::ppoll(ready, watches ? 2 : 1, &timeout, nullptr);
  }
  looks_at_.store(0, std::memory_order_seq_cst);
  eventfd_t wakeups;
  [[maybe_unused]] const int read = ::eventfd_read(wake_fd_.get(), &wakeups);
  MutexLock lock(serving_mu_);
  Disarm(Sleeper::kOwnThread);
  descriptors_ready_ = true;
}

// Returns false if work has arrived in the meantime.
bool EventLoop::FallAsleep() {
  sleeper_ = Sleeper::kOwnThread;
  SetSleeps(true);
  return !ServeLocked(Now(), /*may_look=*/true);
}

}  // namespace penstock::transfer
