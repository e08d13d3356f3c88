// SPDX-License-Identifier: Apache-2.0
// What serves all shm links of a process, both ends: it looks at rings, sockets
// and deaths. Who sleeps is woken by a packet at the link's socket.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/descriptor.h"
#include "dataplane/memory/fork_guard.h"
#include "dataplane/transfer/event_loop.h"

namespace penstock::transfer {

class Loop final : public EventLoop {
 public:
  // What the loop serves. All methods are called by whoever serves, one at a time.
  class Member {
   public:
    virtual ~Member() = default;
    // Does what there is to do without waiting; true if there was something.
    virtual bool Poll(Nanoseconds now) = 0;
    // The socket is readable, or the other side has closed it or has ended.
    virtual void OnSocket() = 0;
    virtual void OnPeerEnd() = 0;
    // Before those who serve sleep (with a Poll() in between), and after.
    virtual void SetSleeps(bool sleeps) = 0;
    // When Poll() must be called at the latest.
    virtual Nanoseconds deadline() const = 0;
    // True: the loop lets go of it, calls OnDropped() and then nothing any more.
    virtual bool over() const = 0;
    virtual void OnDropped() = 0;  // the descriptors may be closed

   protected:
    // False in a forked child, which has neither the loop nor the memory.
    const ForkGuard in_creator_;
  };

  // Begins, and lasts as long as the process.
  static absl::StatusOr<Loop*> Start();

  // How often a member is told that there is something at its socket.
  enum class Trigger : uint8_t {
    kLevel,
    kEdge,  // it takes all that is there, or comes back by its deadline
  };

  // Any thread. The descriptors stay the member's, open until it was dropped.
  // `pidfd` may be below 0.
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
  bool DropOver();  // whether there was one
  bool PollAll(Nanoseconds now);
  bool HandleDescriptors();  // whether there was one

  Descriptor epoll_;
  std::atomic<size_t> members_count_{0};  // the new ones too
  std::atomic<bool> has_new_{false};

  // Of whoever serves.
  std::vector<Served> members_;
  uint64_t last_number_ = 0;
  bool sleeps_ = false;

  Mutex mu_;
  std::vector<Served> new_ GUARDED_BY(mu_);
};

}  // namespace penstock::transfer
