// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "control/sync/mutex.h"
#include "dataplane/transfer/polling.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock::transfer::tcp {
namespace {

constexpr int kEventsPerTurn = 64;

}  // namespace

absl::StatusOr<std::shared_ptr<Loop>> Loop::Start(ServedBy by) {
  Socket epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return BrokenBy("cannot create a descriptor for waiting on sockets", errno);
  std::shared_ptr<Loop> loop(new Loop(std::move(epoll)));
  RETURN_IF_ERROR(loop->EventLoop::Start("penstock-tcp"));
  if (by == ServedBy::kWaitingThreads) RETURN_IF_ERROR(AddPolledLoop(loop));
  return loop;
}

void Loop::Stop() {
  if (stopped_.exchange(true)) return;
  RemovePolledLoop(*this);
  EventLoop::Stop();
  std::unordered_map<uint64_t, std::shared_ptr<Member>> members;  // destroyed without the lock
  Fifo<std::shared_ptr<Member>> calls;
  MutexLock lock(mu_);
  std::swap(members, members_);
  links_ = 0;
  std::swap(calls, calls_);
}

absl::Status Loop::Add(const Socket& socket, std::shared_ptr<Member> member) {
  uint64_t id;
  {
    MutexLock lock(mu_);
    id = ++last_id_;
    member->id_ = id;
    links_ += member->is_link() ? 1 : 0;
    members_.emplace(id, std::move(member));
  }
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, socket.fd(), &event) == 0) return absl::OkStatus();
  const int error = errno;
  MutexLock lock(mu_);
  if (auto failed = members_.extract(id); failed.mapped()->is_link()) --links_;
  return BrokenBy("cannot wait on a socket", error);
}

void Loop::Remove(const Socket& socket, Member& member) {
  ::epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, socket.fd(), nullptr);
  std::shared_ptr<Member> removed;
  MutexLock lock(mu_);
  if (auto its = members_.find(member.id_); its != members_.end()) {
    removed = std::move(its->second);
    links_ -= removed->is_link() ? 1 : 0;
    members_.erase(its);
  }
}

void Loop::Call(std::shared_ptr<Member> member) {
  {
    MutexLock lock(mu_);
    if (stopped_) return;
    calls_.Push(std::move(member));
  }
  Wake();
}

void Loop::SetDeadline(const std::shared_ptr<Member>& member, Clock::time_point deadline) {
  {
    MutexLock lock(mu_);
    member->deadline_ = deadline;
    if (stopped_ || deadline == Clock::time_point::max()) return;
    deadlines_.push_back({deadline, member});
    std::push_heap(deadlines_.begin(), deadlines_.end());
  }
  WakeAt(deadline.time_since_epoch() / std::chrono::nanoseconds(1));
}

// --- On the serving thread -----------------------------------------------------------------

bool Loop::Serve(Nanoseconds, bool) {
  bool found = DispatchReady();
  found = RunCalls() || found;
  return RunDeadlines() || found;
}

EventLoop::Nanoseconds Loop::NextDeadline() {
  MutexLock lock(mu_);
  if (deadlines_.empty()) return kNever;
  return deadlines_.front().at.time_since_epoch() / std::chrono::nanoseconds(1);
}

bool Loop::DispatchReady() {
  epoll_event events[kEventsPerTurn];
  const int count = ::epoll_wait(epoll_.fd(), events, kEventsPerTurn, 0);
  PENSTOCK_CHECK(count >= 0 || errno == EINTR);
  for (int i = 0; i < count && !stopped_; ++i) Dispatch(events[i].data.u64, events[i].events);
  return count > 0;
}

void Loop::Dispatch(uint64_t id, uint32_t events) {
  std::shared_ptr<Member> member;
  {
    MutexLock lock(mu_);
    auto its = members_.find(id);
    if (its == members_.end()) return;  // removed since epoll_wait()
    member = its->second;
  }
  member->OnReady(events);
}

bool Loop::RunCalls() {
  {
    MutexLock lock(mu_);
    if (calls_.empty()) return false;
    std::swap(running_, calls_);
  }
  while (!running_.empty()) running_.Pop()->OnReady(0);
  return true;
}

bool Loop::RunDeadlines() {
  for (bool found = false;; found = true) {
    std::shared_ptr<Member> late;
    {
      MutexLock lock(mu_);
      if (deadlines_.empty() || deadlines_.front().at > Clock::now()) return found;
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
