// SPDX-License-Identifier: Apache-2.0
// One thread that waits for sockets and runs what they cause.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/transfer/fifo.h"
#include "dataplane/transfer/tcp/socket.h"

namespace penstock::transfer::tcp {

// Methods are for any thread unless they say otherwise, and do not wait. In a
// steady state they allocate nothing.
class Loop {
 public:
  using Clock = std::chrono::steady_clock;

  // Somebody with a socket. Called on the loop's thread only, one call at a time,
  // and kept alive during a call.
  class Member {
   public:
    virtual ~Member() = default;
    // epoll's events, told once when they begin (EPOLLET): read, write or accept
    // until there is no more, or Call() for what is left. 0: after Call().
    virtual void OnReady(uint32_t events) = 0;
    virtual void OnDeadline() = 0;

   private:
    friend class Loop;
    uint64_t id_ = 0;  // guarded by the loop's mu_, as is the other
    Clock::time_point deadline_ = Clock::time_point::max();
  };

  // Unavailable when the system has no thread or descriptor for it.
  static absl::StatusOr<std::shared_ptr<Loop>> Start();
  ~Loop() { Stop(); }

  // Ends the thread. What is asked of it later does nothing. Not on the loop's thread.
  void Stop();

  // Watches the socket and keeps the member, until Remove(). A member has one
  // socket at a time.
  absl::Status Add(const Socket& socket, std::shared_ptr<Member> member);
  // On the loop's thread: no event of the socket follows. A deadline stays.
  void Remove(const Socket& socket, Member& member);
  // OnReady(0) soon.
  void Call(std::shared_ptr<Member> member);
  // OnDeadline() then, up to a millisecond late, in place of an earlier deadline;
  // time_point::max(): never. Keeps no member alive.
  void SetDeadline(const std::shared_ptr<Member>& member, Clock::time_point deadline);

 private:
  struct Deadline {
    Clock::time_point at;
    std::weak_ptr<Member> member;
    bool operator<(const Deadline& other) const { return at > other.at; }  // earliest first
  };

  Loop(Socket epoll, Socket bell) : epoll_(std::move(epoll)), bell_(std::move(bell)) {}
  void Run();
  int MillisecondsToWait();
  void Tell(uint64_t id, uint32_t events);
  void RunCalls();
  void RunDeadlines();
  void Ring();  // wakes the thread

  const Socket epoll_;
  const Socket bell_;  // an eventfd
  std::atomic<bool> rung_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<std::thread::id> runner_;
  Fifo<std::shared_ptr<Member>> running_;  // calls, of the loop's thread

  std::mutex mu_;
  // All below guarded by mu_.
  uint64_t last_id_ = 0;
  std::unordered_map<uint64_t, std::shared_ptr<Member>> members_;
  Fifo<std::shared_ptr<Member>> calls_;
  std::vector<Deadline> deadlines_;  // a heap; those that were replaced are among them

  std::thread thread_;
};

}  // namespace penstock::transfer::tcp
