// SPDX-License-Identifier: Apache-2.0
// A transport's event loop, which also chooses the thread that runs it. A thread that waits for
// elements or credits polls the loop and serves the links itself (polling.h), so that no other
// thread has to be woken. While no thread polls, the loop's own thread serves.
//
// Only the thread that holds the lock serves. The loop's thread backs off while other threads poll,
// and checks every 2 ms that they still do. The loop's thread always handles Wake() and WakeAt().
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "control/env/descriptor.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/memory/fork_guard.h"

namespace penstock::transfer {

class EventLoop {
 public:
  using Nanoseconds = int64_t;  // a time of the monotonic clock, or a duration
  static constexpr Nanoseconds kNever = INT64_MAX;
  static constexpr Nanoseconds kMillisecond = 1'000'000;
  static Nanoseconds Now();

  virtual ~EventLoop() = default;

  // --- For threads that poll: one at a time, without holding a lock that an event takes ---

  // Serves without waiting. Returns false if there was nothing to do.
  bool Poll(Nanoseconds now);
  // Call this before sleeping until descriptor() is readable. Returns false if there is something
  // to do. If it returns true, call EndSleep() after the sleep, and then Poll().
  bool BeginSleep();
  void EndSleep();
  virtual int descriptor() const = 0;
  // Returns true if there is no link to serve.
  virtual bool idle() const = 0;

  // False in a forked child, where the loop has no thread.
  bool runs() const { return static_cast<bool>(in_creator_); }

 protected:
  // Starts the loop's thread. ResourceExhausted if no thread can be started, Unavailable if no
  // descriptor is left. `name`: at most 15 characters.
  absl::Status Start(const char* name);
  // Ends the loop's thread; nothing is served after it returns. Call it before destroying the data
  // that Serve() needs, and never while serving.
  void Stop();

  // Any thread. Causes the links to be served once more, soon.
  void Wake();
  // Any thread. Same as Wake(), but at `moment` or up to 2 ms later.
  void WakeAt(Nanoseconds moment);

  // Does the pending work without waiting; returns true if there was any. `descriptors`: some of
  // the descriptors that descriptor() watches may be ready.
  virtual bool Serve(Nanoseconds now, bool descriptors) REQUIRES(serving_mu_) = 0;
  // After SetSleeps(true) and until SetSleeps(false), new work makes descriptor() readable, at
  // least until a thread has checked the descriptors. A Serve() follows SetSleeps(true) before any
  // thread sleeps. SetSleeps(true) may be repeated.
  virtual void SetSleeps(bool sleeps) REQUIRES(serving_mu_) = 0;
  // Returns the latest time by which Serve() must be called.
  virtual Nanoseconds NextDeadline() REQUIRES(serving_mu_) = 0;

 private:
  enum class Sleeper : uint8_t { kNobody, kOwnThread, kPoller };
  void Run();
  void Sleep(bool polled);
  bool FallAsleep() REQUIRES(serving_mu_);
  void Disarm(Sleeper sleeper) REQUIRES(serving_mu_);
  bool ServeLocked(Nanoseconds now, bool may_look) REQUIRES(serving_mu_);
  void SignalThread();

  const ForkGuard in_creator_;
  Descriptor wake_fd_;  // wakes the loop's thread
  std::atomic<bool> stopping_{false};
  std::atomic<bool> woken_{false};
  std::atomic<uint64_t> polls_{0};
  // The time at which the loop's thread will check again without being woken; 0: it is awake.
  std::atomic<Nanoseconds> looks_at_{0};
  std::atomic<ThreadId> server_;

  Mutex serving_mu_;
  bool ended_ GUARDED_BY(serving_mu_) = false;
  Sleeper sleeper_ GUARDED_BY(serving_mu_) = Sleeper::kNobody;  // which thread announced its sleep
  bool descriptors_ready_ GUARDED_BY(serving_mu_) = true;       // some may be ready
  Nanoseconds descriptors_at_ GUARDED_BY(serving_mu_) = 0;      // latest time to check again

  Thread thread_;
};

}  // namespace penstock::transfer
