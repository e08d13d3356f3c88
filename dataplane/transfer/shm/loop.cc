// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/shm/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "penstock/status.h"

namespace penstock::transfer {
namespace {

constexpr Loop::Nanoseconds kMillisecond = 1'000'000;
// What a hand-over between two that are awake takes, many times over.
constexpr Loop::Nanoseconds kSpin = 20'000;
// So many spins in vain, and there is no other until something comes so soon
// after falling asleep that a spin would have met it.
constexpr int kWastedSpins = 4;
// A bell that was not heard, for whatever reason, costs no more than this.
constexpr Loop::Nanoseconds kLongestSleep = 1'000 * kMillisecond;
// While rings are busy, sockets are looked at that often.
constexpr Loop::Nanoseconds kSocketsEvery = kMillisecond;

constexpr uint64_t kDoorbellTag = 0;
constexpr uint64_t kPidfdBit = 1;

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

absl::StatusOr<Loop*> Loop::Start() {
  auto loop = std::unique_ptr<Loop>(new Loop);
  loop->epoll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  loop->doorbell_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{};
  // At each ring, and never read: nobody can take the ring away.
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = kDoorbellTag;
  if (!loop->epoll_ || !loop->doorbell_ ||
      ::epoll_ctl(loop->epoll_.get(), EPOLL_CTL_ADD, loop->doorbell(), &event) != 0) {
    return absl::NotFoundError(
        absl::StrCat("no descriptors are left for a doorbell: errno ", errno));
  }
  Loop* running = loop.release();
  std::thread([running] { running->Run(); }).detach();
  return running;
}

Loop::Nanoseconds Loop::Now() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void Loop::Add(std::shared_ptr<Member> member, int socket, int pidfd) {
  {
    std::lock_guard lock(mu_);
    new_.push_back({0, std::move(member), socket, pidfd});
  }
  Wake();
}

void Loop::Wake() {
  woken_.store(true, std::memory_order_seq_cst);
  if (asleep_until_.load(std::memory_order_seq_cst) == 0) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(doorbell(), &one, sizeof(one));
}

void Loop::WakeAt(Nanoseconds moment) {
  // One that is awake, or wakes before, asks for deadlines before it sleeps.
  if (asleep_until_.load(std::memory_order_seq_cst) > moment + kMillisecond) Wake();
}

void Loop::Run() {
  Nanoseconds sockets_at = 0;
  while (true) {
    const Nanoseconds now = Now();
    woken_.store(false, std::memory_order_seq_cst);  // before what a Wake() is for is looked at
    TakeOnNew();
    if (PollAll(now)) {
      idle_since_ = now;
    } else if (MaySpin(now)) {
      Relax();
    } else {
      Sleep();
      sockets_at = Now() + kSocketsEvery;
    }
    if (now >= sockets_at) {
      HandleDescriptors(0);
      sockets_at = now + kSocketsEvery;
    }
    DropOver();
  }
}

void Loop::TakeOnNew() {
  std::vector<Served> taken;
  {
    std::lock_guard lock(mu_);
    if (new_.empty()) return;
    taken.swap(new_);
  }
  for (Served& served : taken) {
    served.number = ++last_number_;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.u64 = served.number << 1;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, served.socket, &event);
    if (served.pidfd >= 0) {
      event.events = EPOLLIN;
      event.data.u64 |= kPidfdBit;
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, served.pidfd, &event);
    }
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

bool Loop::MaySpin(Nanoseconds now) const {
  return wasted_spins_ < kWastedSpins && now - idle_since_ < kSpin;
}

Loop::Nanoseconds Loop::NextDeadline() const {
  Nanoseconds next = kNever;
  for (const Served& served : members_) next = std::min(next, served.member->deadline());
  return next;
}

void Loop::SetSleeps(bool sleeps) {
  for (const Served& served : members_) {
    if (!served.member->over()) served.member->SetSleeps(sleeps);
  }
}

void Loop::Sleep() {
  const Nanoseconds begin = Now();
  // First this, so that whoever sets a deadline from now on rings.
  asleep_until_.store(kNever, std::memory_order_seq_cst);
  const Nanoseconds until = std::min(NextDeadline(), begin + kLongestSleep);
  asleep_until_.store(std::max<Nanoseconds>(until, 1), std::memory_order_seq_cst);
  SetSleeps(true);
  if (!woken_.load(std::memory_order_seq_cst) && !PollAll(begin) && !DropOver()) {
    if (wasted_spins_ < kWastedSpins) ++wasted_spins_;
    // Up, so that what is due then is due indeed.
    const Nanoseconds left = std::max<Nanoseconds>(until - begin, 0);
    HandleDescriptors(static_cast<int>((left + kMillisecond - 1) / kMillisecond));
  }
  SetSleeps(false);
  asleep_until_.store(0, std::memory_order_seq_cst);
  idle_since_ = Now();
  if (idle_since_ - begin < kSpin) wasted_spins_ = 0;
}

void Loop::HandleDescriptors(int timeout_ms) {
  epoll_event events[32];
  const int count = ::epoll_wait(epoll_.get(), events, 32, timeout_ms);
  for (int i = 0; i < count; ++i) {
    const uint64_t tag = events[i].data.u64;
    if (tag == kDoorbellTag) continue;
    for (size_t m = 0; m < members_.size(); ++m) {
      if (members_[m].number != tag >> 1 || members_[m].member->over()) continue;
      if ((tag & kPidfdBit) != 0) {
        members_[m].member->OnPeerEnd();
      } else {
        members_[m].member->OnSocket();
      }
    }
  }
}

}  // namespace penstock::transfer
