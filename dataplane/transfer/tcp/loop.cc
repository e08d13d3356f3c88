// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/loop.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/check.h"

namespace penstock::transfer::tcp {
namespace {

constexpr int kEventsPerTurn = 64;

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

absl::StatusOr<std::shared_ptr<Loop>> Loop::Start() {
  Socket epoll(::epoll_create1(EPOLL_CLOEXEC));
  Socket bell(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!epoll || !bell) return BrokenBy("no descriptor to wait for sockets with", errno);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = 0;  // no member's id
  if (::epoll_ctl(epoll.fd(), EPOLL_CTL_ADD, bell.fd(), &event) != 0) {
    return BrokenBy("cannot wait for sockets", errno);
  }
  std::shared_ptr<Loop> loop(new Loop(std::move(epoll), std::move(bell)));
  const SignalsBlocked blocked;
  try {
    loop->thread_ = std::thread([raw = loop.get()] { raw->Run(); });
  } catch (const std::system_error& error) {
    return absl::UnavailableError(absl::StrCat("no thread to wait for sockets: ", error.what()));
  }
  pthread_setname_np(loop->thread_.native_handle(), "penstock-tcp");
  return loop;
}

void Loop::Stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  Ring();
  thread_.join();
  std::unordered_map<uint64_t, std::shared_ptr<Member>> members;  // let go of without the lock
  Fifo<std::shared_ptr<Member>> calls;
  std::lock_guard lock(mu_);
  std::swap(members, members_);
  std::swap(calls, calls_);
}

absl::Status Loop::Add(const Socket& socket, std::shared_ptr<Member> member) {
  uint64_t id;
  {
    std::lock_guard lock(mu_);
    id = ++last_id_;
    member->id_ = id;
    members_.emplace(id, std::move(member));
  }
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, socket.fd(), &event) == 0) return absl::OkStatus();
  const int error = errno;
  std::lock_guard lock(mu_);
  members_.erase(id);
  return BrokenBy("cannot wait for a socket", error);
}

void Loop::Remove(const Socket& socket, Member& member) {
  ::epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, socket.fd(), nullptr);
  std::shared_ptr<Member> removed;
  std::lock_guard lock(mu_);
  if (auto its = members_.find(member.id_); its != members_.end()) {
    removed = std::move(its->second);
    members_.erase(its);
  }
}

void Loop::Call(std::shared_ptr<Member> member) {
  {
    std::lock_guard lock(mu_);
    if (stopping_) return;
    calls_.Push(std::move(member));
  }
  Ring();
}

void Loop::SetDeadline(const std::shared_ptr<Member>& member, Clock::time_point deadline) {
  bool earlier;
  {
    std::lock_guard lock(mu_);
    member->deadline_ = deadline;
    if (stopping_ || deadline == Clock::time_point::max()) return;
    earlier = deadlines_.empty() || deadline < deadlines_.front().at;
    deadlines_.push_back({deadline, member});
    std::push_heap(deadlines_.begin(), deadlines_.end());
  }
  if (earlier) Ring();
}

void Loop::Ring() {
  if (std::this_thread::get_id() == runner_) return;  // looks before it waits
  if (!rung_.exchange(true)) ::eventfd_write(bell_.fd(), 1);
}

void Loop::Run() {
  runner_ = std::this_thread::get_id();
  epoll_event events[kEventsPerTurn];
  while (!stopping_) {
    const int count = ::epoll_wait(epoll_.fd(), events, kEventsPerTurn, MillisecondsToWait());
    PENSTOCK_CHECK(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == 0) {
        eventfd_t rings;
        ::eventfd_read(bell_.fd(), &rings);
        rung_ = false;
      } else {
        Tell(events[i].data.u64, events[i].events);
      }
    }
    RunCalls();
    RunDeadlines();
  }
}

int Loop::MillisecondsToWait() {
  std::lock_guard lock(mu_);
  if (!calls_.empty()) return 0;
  if (deadlines_.empty()) return -1;
  const auto wait =
      std::chrono::ceil<std::chrono::milliseconds>(deadlines_.front().at - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(wait.count(), 0, 3'600'000));
}

void Loop::Tell(uint64_t id, uint32_t events) {
  std::shared_ptr<Member> member;
  {
    std::lock_guard lock(mu_);
    auto its = members_.find(id);
    if (its == members_.end()) return;  // removed in this turn
    member = its->second;
  }
  member->OnReady(events);
}

void Loop::RunCalls() {
  {
    std::lock_guard lock(mu_);
    std::swap(running_, calls_);
  }
  while (!running_.empty()) running_.Pop()->OnReady(0);
}

void Loop::RunDeadlines() {
  while (true) {
    std::shared_ptr<Member> late;
    {
      std::lock_guard lock(mu_);
      if (deadlines_.empty() || deadlines_.front().at > Clock::now()) return;
      std::pop_heap(deadlines_.begin(), deadlines_.end());
      const Deadline deadline = std::move(deadlines_.back());
      deadlines_.pop_back();
      late = deadline.member.lock();
      if (late == nullptr || late->deadline_ != deadline.at) continue;  // replaced
      late->deadline_ = Clock::time_point::max();
    }
    late->OnDeadline();
  }
}

}  // namespace penstock::transfer::tcp
