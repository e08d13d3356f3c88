// SPDX-License-Identifier: Apache-2.0
// The thread that serves all shm links of a process, both ends. It looks at
// rings, sockets and deaths; when there is nothing it spins for a moment, then
// sleeps at the process's doorbell.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/memory/descriptor.h"
#include "dataplane/memory/forked.h"

namespace penstock::transfer {

class Loop {
 public:
  using Nanoseconds = int64_t;  // of the monotonic clock; as a moment or as a time
  static constexpr Nanoseconds kNever = INT64_MAX;

  // What the loop serves. All methods are called on its thread.
  class Member {
   public:
    virtual ~Member() = default;
    // Does what there is to do without waiting; true if there was something.
    virtual bool Poll(Nanoseconds now) = 0;
    // The socket is readable, or the other side has closed it or has ended.
    virtual void OnSocket() = 0;
    virtual void OnPeerEnd() = 0;
    // Before the loop sleeps (with a Poll() in between), and after.
    virtual void SetSleeps(bool sleeps) = 0;
    // When Poll() must be called at the latest.
    virtual Nanoseconds deadline() const = 0;
    // True: the loop lets go of it, calls OnDropped() and then nothing any more.
    virtual bool over() const = 0;
    virtual void OnDropped() = 0;  // the descriptors may be closed

   protected:
    // False in a forked child, which has neither the loop nor the memory.
    const MadeHere made_here_;
  };

  // Begins with a thread that lasts as long as the process.
  static absl::StatusOr<Loop*> Start();

  // Any thread. The descriptors stay the member's, open until it was dropped.
  // `pidfd` may be below 0.
  void Add(std::shared_ptr<Member> member, int socket, int pidfd);
  // Any thread: Poll() of every member follows soon.
  void Wake();
  // Any thread: as Wake() at that moment, or at most a millisecond later.
  void WakeAt(Nanoseconds moment);

  static Nanoseconds Now();
  int doorbell() const { return doorbell_.get(); }
  // False in a forked child: there this has no thread.
  bool runs() const { return static_cast<bool>(made_here_); }

 private:
  struct Served {
    uint64_t number;
    std::shared_ptr<Member> member;
    int socket;
    int pidfd;
  };

  Loop() = default;
  void Run();
  void TakeOnNew();
  bool DropOver();  // whether there was one
  bool PollAll(Nanoseconds now);
  bool MaySpin(Nanoseconds now) const;
  void Sleep();
  void SetSleeps(bool sleeps);
  void HandleDescriptors(int timeout_ms);
  Nanoseconds NextDeadline() const;

  const MadeHere made_here_;
  Descriptor epoll_;
  Descriptor doorbell_;

  // Of the loop's thread.
  std::vector<Served> members_;
  uint64_t last_number_ = 0;
  Nanoseconds idle_since_ = 0;
  int wasted_spins_ = 0;  // in a row, that ended in sleep

  std::atomic<bool> woken_{false};
  std::atomic<Nanoseconds> asleep_until_{0};  // 0: awake

  std::mutex mu_;
  std::vector<Served> new_;  // guarded by mu_
};

}  // namespace penstock::transfer
