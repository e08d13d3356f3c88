// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/shm/loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/polling.h"
#include "include/status_macros.h"

namespace penstock::transfer::shm {
namespace {

constexpr uint64_t kPidfdBit = 1;

}  // namespace

absl::StatusOr<Loop*> Loop::Start() {
  auto loop = std::unique_ptr<Loop>(new Loop);
  loop->epoll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!loop->epoll_) {
    return absl::NotFoundError(absl::StrCat("cannot create a loop's descriptors: errno ", errno));
  }
  RETURN_IF_ERROR(loop->EventLoop::Start("penstock-shm"));
  const absl::Status added = AddPolledLoop(std::shared_ptr<Loop>(loop.get(), [](Loop*) {}));
  if (!added.ok()) {
    loop->Stop();
    return added;
  }
  return loop.release();
}

void Loop::Add(std::shared_ptr<Member> member, int socket, int pidfd, Trigger trigger) {
  members_count_.fetch_add(1, std::memory_order_relaxed);
  {
    MutexLock lock(mu_);
    new_.push_back({0, std::move(member), socket, pidfd, trigger});
  }
  has_new_.store(true, std::memory_order_seq_cst);
  Wake();
}

// --- On the serving thread ---------------------------------------------------------------

bool Loop::Serve(Nanoseconds now, bool descriptors) {
  if (has_new_.load(std::memory_order_seq_cst)) AcceptNew();
  bool found = descriptors && HandleDescriptors();
  found = PollAll(now) || found;
  return DropOver() || found;
}

void Loop::AcceptNew() {
  std::vector<Served> taken;
  {
    MutexLock lock(mu_);
    has_new_.store(false, std::memory_order_seq_cst);
    taken.swap(new_);
  }
  for (Served& served : taken) {
    served.number = ++last_number_;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    if (served.trigger == Trigger::kEdge) event.events |= EPOLLET;
    event.data.u64 = served.number << 1;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, served.socket, &event);
    if (served.pidfd >= 0) {
      event.events = EPOLLIN;
      event.data.u64 |= kPidfdBit;
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, served.pidfd, &event);
    }
    served.member->SetSleeps(sleeps_);
    members_.push_back(std::move(served));
  }
}

bool Loop::DropOver() {
  bool dropped = false;
  for (size_t i = 0; i < members_.size();) {
    if (!members_[i].member->over()) {
      ++i;
      continue;
    }
    const Served gone = std::move(members_[i]);
    members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(i));
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, gone.socket, nullptr);
    if (gone.pidfd >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, gone.pidfd, nullptr);
    members_count_.fetch_sub(1, std::memory_order_relaxed);
    gone.member->OnDropped();
    dropped = true;
  }
  return dropped;
}

bool Loop::PollAll(Nanoseconds now) {
  bool found = false;
  for (const Served& served : members_) {
    if (!served.member->over()) found = served.member->Poll(now) || found;
  }
  return found;
}

Loop::Nanoseconds Loop::NextDeadline() {
  Nanoseconds next = kNever;
  for (const Served& served : members_) next = std::min(next, served.member->deadline());
  return next;
}

void Loop::SetSleeps(bool sleeps) {
  sleeps_ = sleeps;
  for (const Served& served : members_) {
    if (!served.member->over()) served.member->SetSleeps(sleeps);
  }
}

bool Loop::HandleDescriptors() {
  epoll_event events[32];
  const int count = ::epoll_wait(epoll_.get(), events, 32, 0);
  for (int i = 0; i < count; ++i) {
    const uint64_t tag = events[i].data.u64;
    for (size_t m = 0; m < members_.size(); ++m) {
      if (members_[m].number != tag >> 1 || members_[m].member->over()) continue;
      if ((tag & kPidfdBit) != 0) {
        members_[m].member->OnPeerEnd();
      } else {
        members_[m].member->OnSocket();
      }
    }
  }
  return count > 0;
}

}  // namespace penstock::transfer::shm
