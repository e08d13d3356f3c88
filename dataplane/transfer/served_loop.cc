// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/served_loop.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "control/sync/start_thread.h"
#include "penstock/status.h"

namespace penstock::transfer {
namespace {

using Nanoseconds = ServedLoop::Nanoseconds;

// How long the own thread trusts that whoever came by comes again. What waits for
// nobody waits so long at most when nobody does.
constexpr Nanoseconds kAside = 2 * ServedLoop::kMillisecond;
// A bell that was not heard, for whatever reason, costs no more than this.
constexpr Nanoseconds kLongestSleep = 1'000 * ServedLoop::kMillisecond;
// While links are busy, descriptors are looked at that often.
constexpr Nanoseconds kDescriptorsEvery = ServedLoop::kMillisecond;

// Signals are for the program's own threads.
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

Nanoseconds ServedLoop::Now() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

absl::Status ServedLoop::Start(const char* name) {
  bell_ = Descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell_) {
    return absl::UnavailableError(absl::StrCat("no descriptor to be woken by: errno ", errno));
  }
  const SignalsBlocked blocked;
  PENSTOCK_ASSIGN_OR_RETURN(
      thread_, StartThread(absl::StrCat("serving links (", name, ")"), [this] { Run(); }));
  pthread_setname_np(thread_.native_handle(), name);
  return absl::OkStatus();
}

void ServedLoop::Stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  Ring();
  thread_.join();
  MutexLock turn(turn_);
  ended_ = true;
}

// --- Whoever comes by ------------------------------------------------------------------

bool ServedLoop::Visit(Nanoseconds now) {
  visits_.fetch_add(1, std::memory_order_seq_cst);
  // One that sleeps for long keeps aside when it has heard of this.
  Nanoseconds looks_at = looks_at_.load(std::memory_order_seq_cst);
  if (looks_at > now + kAside && looks_at_.compare_exchange_strong(looks_at, 0)) Ring();
  if (!turn_.try_lock()) return false;
  MutexLock turn(turn_, std::adopt_lock);
  Disarm(Sleeper::kOwn);
  return ServeWithTurn(now, /*may_look=*/true);
}

bool ServedLoop::BeginSleep() {
  MutexLock turn(turn_);
  if (ended_) return true;  // nothing comes any more
  sleeper_ = Sleeper::kVisitor;
  SetSleeps(true);  // again, if the own thread has: that may have been answered
  if (!ServeWithTurn(Now(), /*may_look=*/true)) return true;
  Disarm(Sleeper::kVisitor);
  return false;
}

void ServedLoop::EndSleep() {
  MutexLock turn(turn_);
  Disarm(Sleeper::kVisitor);
  descriptors_ready_ = true;
}

void ServedLoop::Disarm(Sleeper sleeper) {
  if (sleeper_ != sleeper) return;
  sleeper_ = Sleeper::kNobody;
  if (!ended_) SetSleeps(false);
}

bool ServedLoop::ServeWithTurn(Nanoseconds now, bool may_look) {
  if (ended_) return false;
  const bool descriptors = may_look && (descriptors_ready_ || now >= descriptors_at_);
  if (descriptors) {
    descriptors_ready_ = false;
    descriptors_at_ = now + kDescriptorsEvery;
  }
  server_ = std::this_thread::get_id();
  const bool found = Serve(now, descriptors);
  server_ = std::thread::id();
  return found;
}

// --- The own thread ----------------------------------------------------------------

void ServedLoop::Wake() {
  woken_.store(true, std::memory_order_seq_cst);
  // Whoever serves at this moment comes again, or the own thread looks within kAside.
  if (server_.load() == std::this_thread::get_id()) return;
  if (looks_at_.exchange(0, std::memory_order_seq_cst) != 0) Ring();
}

void ServedLoop::WakeAt(Nanoseconds moment) {
  // One that is awake, or wakes before, asks for deadlines before it sleeps.
  if (looks_at_.load(std::memory_order_seq_cst) > moment + ServedLoop::kMillisecond) Wake();
}

void ServedLoop::Ring() {
  [[maybe_unused]] const int rung = ::eventfd_write(bell_.get(), 1);
}

void ServedLoop::Run() {
  uint64_t visits = 0;
  while (!stopping_) {
    woken_.store(false, std::memory_order_seq_cst);  // before what a Wake() is for is looked at
    bool found;
    {
      MutexLock turn(turn_);
      // Descriptors that a visitor sleeps at are his: what they tell, they tell once.
      found = ServeWithTurn(Now(), sleeper_ != Sleeper::kVisitor);
    }
    const uint64_t now_visits = visits_.load(std::memory_order_seq_cst);
    const bool visited = visits != now_visits;
    visits = now_visits;
    if (!found || visited) Rest(visited);
  }
}

// Sleeps. If others have come by of late: for a short time, and what comes is theirs.
void ServedLoop::Rest(bool visited) {
  const uint64_t visits = visits_.load(std::memory_order_seq_cst);
  // First this, so that whoever sets a deadline from now on rings.
  looks_at_.store(kNever, std::memory_order_seq_cst);
  const Nanoseconds now = Now();
  Nanoseconds until = now + (visited ? kAside : kLongestSleep);
  bool watches = false;
  {
    MutexLock turn(turn_);
    until = std::min(until, NextDeadline());
    looks_at_.store(std::max<Nanoseconds>(until, 1), std::memory_order_seq_cst);
    // Anybody who comes by from here on sees for how long this sleeps, and rings.
    const bool alone = !visited && visits_.load(std::memory_order_seq_cst) == visits;
    if (!visited && !alone) until = now;
    watches = alone && sleeper_ == Sleeper::kNobody;
    if (watches && !FallAsleep()) until = now;
  }
  if (until > now && !woken_.load(std::memory_order_seq_cst)) {
    pollfd ready[2] = {{bell_.get(), POLLIN, 0}, {descriptor(), POLLIN, 0}};
    const Nanoseconds left = until - now;
    const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
    ::ppoll(ready, watches ? 2 : 1, &timeout, nullptr);
  }
  looks_at_.store(0, std::memory_order_seq_cst);
  eventfd_t rings;
  [[maybe_unused]] const int read = ::eventfd_read(bell_.get(), &rings);
  MutexLock turn(turn_);
  Disarm(Sleeper::kOwn);
  descriptors_ready_ = true;
}

// False: something has come meanwhile.
bool ServedLoop::FallAsleep() {
  sleeper_ = Sleeper::kOwn;
  SetSleeps(true);
  return !ServeWithTurn(Now(), /*may_look=*/true);
}

}  // namespace penstock::transfer
