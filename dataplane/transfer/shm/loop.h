// SPDX-License-Identifier: Apache-2.0
// The loop that serves both ends of all shm links of a process. It watches rings, sockets and the
// exits of other processes. A side that sleeps is woken by a packet on the link's socket.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "control/env/descriptor.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/fork_guard.h"
#include "dataplane/transfer/event_loop.h"

namespace penstock::transfer::shm {

class Loop final : public EventLoop {
 public:
  // One object that the loop serves. All methods are called on the serving thread, one at a time.
  class Member {
   public:
    virtual ~Member() = default;
    // Does the pending work without waiting; returns true if there was any.
    virtual bool Poll(Nanoseconds now) = 0;
    // OnSocket(): the socket is readable, or the other side has closed it. OnPeerEnd(): the other
    // process has ended.
    virtual void OnSocket() = 0;
    virtual void OnPeerEnd() = 0;
    // Called with true before the serving threads sleep, and with false afterwards. A Poll()
    // follows SetSleeps(true) before the threads sleep.
    virtual void SetSleeps(bool sleeps) = 0;
    // Returns the time by which Poll() must be called.
    virtual Nanoseconds deadline() const = 0;
    // If this returns true, the loop removes the member and calls OnDropped(), which is the last
    // call.
    virtual bool over() const = 0;
    virtual void OnDropped() = 0;  // from now on the descriptors may be closed

   protected:
    // False in a forked child, which has neither the loop nor the memory.
    const ForkGuard in_creator_;
  };

  // Starts the loop, which lasts as long as the process.
  static absl::StatusOr<Loop*> Start();

  // How often OnSocket() is called for a readable socket.
  enum class Trigger : uint8_t {
    kLevel,
    kEdge,  // once; OnSocket() reads everything, or continues by deadline()
  };

  // Any thread. The member owns the descriptors and keeps them open until it has been dropped.
  // `pidfd` may be negative.
  void Add(std::shared_ptr<Member> member, int socket, int pidfd,
           Trigger trigger = Trigger::kLevel);
  using EventLoop::Wake;
  using EventLoop::WakeAt;

  int descriptor() const override { return epoll_.get(); }
  bool idle() const override { return members_count_.load(std::memory_order_relaxed) == 0; }

 private:
  struct Served {
    uint64_t number;
    std::shared_ptr<Member> member;
    int socket;
    int pidfd;
    Trigger trigger;
  };

  Loop() = default;
  bool Serve(Nanoseconds now, bool descriptors) override;
  void SetSleeps(bool sleeps) override;
  Nanoseconds NextDeadline() override;
  void AcceptNew();
  bool DropOver();  // true if there was one
  bool PollAll(Nanoseconds now);
  bool HandleDescriptors();  // true if there was one

  Descriptor epoll_;
  std::atomic<size_t> members_count_{0};  // includes new members
  std::atomic<bool> has_new_{false};

  // Used by the serving thread only.
  std::vector<Served> members_;
  uint64_t last_number_ = 0;
  bool sleeps_ = false;

  Mutex mu_;
  std::vector<Served> new_ GUARDED_BY(mu_);
};

}  // namespace penstock::transfer::shm
