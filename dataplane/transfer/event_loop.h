// SPDX-License-Identifier: Apache-2.0
// A transport's event loop, and which thread runs it. A thread that waits for
// elements or credits polls the loop and serves the links itself (polling.h), so that
// no other thread need be woken. While nobody polls it, the loop's own thread serves.
//
// One thread at a time serves: it has the lock. The own thread backs off as long
// as others poll, and looks every 2 ms whether they still do. Whatever it is
// told through Wake() and WakeAt() it serves in any case.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "absl/status/status.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/descriptor.h"
#include "dataplane/memory/fork_guard.h"

namespace penstock::transfer {

class EventLoop {
 public:
  using Nanoseconds = int64_t;  // of the monotonic clock; as a moment or as a time
  static constexpr Nanoseconds kNever = INT64_MAX;
  static constexpr Nanoseconds kMillisecond = 1'000'000;
  static Nanoseconds Now();

  virtual ~EventLoop() = default;

  // --- For a thread that polls; one at a time, with no lock that an event takes ---

  // Serves, without waiting. False: there was nothing.
  bool Poll(Nanoseconds now);
  // Before it sleeps until descriptor() is readable. False: there is something to
  // do; else EndSleep() must follow, and then a Poll().
  bool BeginSleep();
  void EndSleep();
  virtual int descriptor() const = 0;
  // There is nobody to serve.
  virtual bool idle() const = 0;

  // False in a forked child: there this has no thread.
  bool runs() const { return static_cast<bool>(in_creator_); }

 protected:
  // The own thread begins. ResourceExhausted when the process gets no thread, Unavailable when it
  // gets no descriptor. `name`: up to 15 characters.
  absl::Status Start(const char* name);
  // It ends, and nobody is served any more. To be called before what Serve() needs
  // goes; not while serving.
  void Stop();

  // Any thread: the links are served once more, soon.
  void Wake();
  // Any thread: as Wake() at that moment, or up to 2 ms later.
  void WakeAt(Nanoseconds moment);

  // Does what there is to do, without waiting; true if there was something.
  // `descriptors`: some of those that descriptor() watches may be ready.
  virtual bool Serve(Nanoseconds now, bool descriptors) REQUIRES(serving_mu_) = 0;
  // From true to false, whatever there is to do makes descriptor() readable, at
  // least until somebody has looked at the descriptors. A Serve() follows before
  // anybody sleeps. True may be said again.
  virtual void SetSleeps(bool sleeps) REQUIRES(serving_mu_) = 0;
  // When Serve() must be called at the latest.
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
  Descriptor wake_fd_;  // of the own thread
  std::atomic<bool> stopping_{false};
  std::atomic<bool> woken_{false};
  std::atomic<uint64_t> polls_{0};
  // When the own thread looks again by itself; 0: it is awake.
  std::atomic<Nanoseconds> looks_at_{0};
  std::atomic<std::thread::id> server_;

  Mutex serving_mu_;
  bool ended_ GUARDED_BY(serving_mu_) = false;
  Sleeper sleeper_ GUARDED_BY(serving_mu_) = Sleeper::kNobody;  // who has said that he sleeps
  bool descriptors_ready_ GUARDED_BY(serving_mu_) = true;       // as far as is known
  Nanoseconds descriptors_at_ GUARDED_BY(serving_mu_) = 0;  // looked at again then at the latest

  std::thread thread_;
};

}  // namespace penstock::transfer
