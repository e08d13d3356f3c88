// SPDX-License-Identifier: Apache-2.0
// Waits for sockets and runs their events.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "control/sync/clock.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/event_loop.h"
#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/tcp/socket.h"

namespace penstock::transfer::tcp {

// Any thread may call its methods unless stated otherwise; they do not wait. In a steady state they
// allocate nothing.
class Loop final : public EventLoop {
 public:
  using Clock = SteadyClock;

  // An object with a socket. Its methods are called on the loop's serving thread, one at a time,
  // and the object is kept alive during a call.
  class Member {
   public:
    virtual ~Member() = default;
    // `events` are epoll's, reported only when they begin (EPOLLET); 0 after Call(). Therefore
    // read, write or accept until no more is possible, or use Call() to continue later.
    virtual void OnReady(uint32_t events) = 0;
    virtual void OnDeadline() = 0;
    // Returns true if a thread may wait for the events of this member.
    virtual bool is_link() const { return true; }

   private:
    friend class Loop;
    uint64_t id_ GUARDED_BY(&Loop::mu_) = 0;
    Clock::time_point deadline_ GUARDED_BY(&Loop::mu_) = Clock::time_point::max();
  };

  enum class ServedBy {
    kWaitingThreads,  // threads that poll (polling.h), else its own thread
    kOwnThread,       // only this thread, in parallel with other loops
  };
  // Unavailable if the system has no thread or descriptor for the loop.
  static absl::StatusOr<std::shared_ptr<Loop>> Start(ServedBy by = ServedBy::kWaitingThreads);
  ~Loop() override { Stop(); }

  // After it returns, no member is called; later requests do nothing. Do not call while serving.
  void Stop();

  // Watches the socket and keeps the member until Remove(). A member has one socket at a time.
  absl::Status Add(const Socket& socket, std::shared_ptr<Member> member);
  // Call this while serving. No event of the socket follows. The member's deadline is kept.
  void Remove(const Socket& socket, Member& member);
  // Calls OnReady(0) soon.
  void Call(std::shared_ptr<Member> member);
  // Calls OnDeadline() at `deadline` or up to 2 ms later; time_point::max(): never. Replaces the
  // deadline that was set before, if any. Does not keep the member alive.
  void SetDeadline(const std::shared_ptr<Member>& member, Clock::time_point deadline);

  int descriptor() const override { return epoll_.fd(); }
  bool idle() const override { return links_.load(std::memory_order_relaxed) == 0; }

 private:
  struct Deadline {
    Clock::time_point at;
    std::weak_ptr<Member> member;
    bool operator<(const Deadline& other) const { return at > other.at; }  // earliest first
  };

  explicit Loop(Socket epoll) : epoll_(std::move(epoll)) {}
  bool Serve(Nanoseconds now, bool descriptors) override;
  void SetSleeps(bool) override {}  // sockets always report
  Nanoseconds NextDeadline() override;
  bool DispatchReady();
  void Dispatch(uint64_t id, uint32_t events);
  bool RunCalls();
  bool RunDeadlines();

  const Socket epoll_;
  std::atomic<bool> stopped_{false};
  std::atomic<int> links_{0};              // number of members that are links
  Fifo<std::shared_ptr<Member>> running_;  // calls; used by the serving thread

  Mutex mu_;
  uint64_t last_id_ GUARDED_BY(mu_) = 0;
  std::unordered_map<uint64_t, std::shared_ptr<Member>> members_ GUARDED_BY(mu_);
  Fifo<std::shared_ptr<Member>> calls_ GUARDED_BY(mu_);
  // A heap; includes replaced deadlines.
  std::vector<Deadline> deadlines_ GUARDED_BY(mu_);
};

}  // namespace penstock::transfer::tcp
