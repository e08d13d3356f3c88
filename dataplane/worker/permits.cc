// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/permits.h"

#include <algorithm>
#include <tuple>

#include "control/sync/mutex.h"
#include "penstock/check.h"

namespace penstock::worker {

Permits::Permits(int count, std::chrono::nanoseconds slice)
    : count_(count), slice_(slice), free_(count) {
  PENSTOCK_CHECK(count >= 1);
}

void Permits::GrantLocked() {
  bool any = false;
  while (free_ > 0 && !waiting_.empty()) {
    Permit* next = TakeNextLocked();
    next->queued_ = false;
    next->held_ = true;
    next->held_since_ = Permit::Clock::now();
    --free_;
    any = true;
  }
  if (any) granted_.NotifyAll();
}

void Permits::QueueLocked(Permit* permit) {
  waiting_.push_back(permit);
  ++queued_;
  Job& job = jobs_.at(permit->job_);
  if (job.waiting++ == 0) job.used = std::max(job.used, begun_[job.share.priority]);
}

Permit* Permits::TakeNextLocked() {
  const auto earlier = [this](const Permit* first, const Permit* second) REQUIRES(mu_) {
    const Job &a = jobs_.at(first->job_), &b = jobs_.at(second->job_);
    return std::tuple(-a.share.priority, a.used, a.turn) <
           std::tuple(-b.share.priority, b.used, b.turn);
  };
  const auto next = std::min_element(waiting_.begin(), waiting_.end(), earlier);
  Permit* permit = *next;
  waiting_.erase(next);
  --queued_;
  Job& job = jobs_.at(permit->job_);
  --job.waiting;
  begun_[job.share.priority] = job.used;
  job.used += kTurn / static_cast<uint64_t>(job.share.weight);
  job.turn = ++turns_;
  return permit;
}

Permit::Permit(Permits& permits, JobId job, JobShare share) : permits_(permits), job_(job) {
  PENSTOCK_CHECK(share.weight >= 1);
  MutexLock lock(permits_.mu_);
  Permits::Job& its = permits_.jobs_[job_];
  its.share = share;
  ++its.partitions;
}

Permit::~Permit() {
  MutexLock lock(permits_.mu_);
  GiveUpLocked();
  const auto job = permits_.jobs_.find(job_);
  if (--job->second.partitions == 0) permits_.jobs_.erase(job);
}

bool Permit::Take() {
  MutexLock lock(permits_.mu_);
  return WaitLocked(lock);
}

void Permit::Pause() {
  MutexLock lock(permits_.mu_);
  if (pauses_++ == 0) GiveUpLocked();
}

bool Permit::Resume() {
  MutexLock lock(permits_.mu_);
  PENSTOCK_CHECK(pauses_ > 0);
  if (--pauses_ > 0) return !cancelled_;
  return WaitLocked(lock);
}

bool Permit::ShouldYield() const {
  if (permits_.queued_.load(std::memory_order_relaxed) == 0) return false;
  MutexLock lock(permits_.mu_);
  return held_ && Clock::now() - held_since_ >= permits_.slice_;
}

bool Permit::Yield() {
  MutexLock lock(permits_.mu_);
  if (held_) PutBackLocked();
  return WaitLocked(lock);  // waits before the permit is granted
}

void Permit::Cancel() {
  MutexLock lock(permits_.mu_);
  cancelled_ = true;
  GiveUpLocked();
}

std::chrono::nanoseconds Permit::held() const {
  MutexLock lock(permits_.mu_);
  return held_for_ + (held_ ? Clock::now() - held_since_ : Clock::duration::zero());
}

bool Permit::WaitLocked(MutexLock& lock) {
  if (cancelled_) return false;
  if (!held_ && !queued_) {
    queued_ = true;
    permits_.QueueLocked(this);
    permits_.GrantLocked();
  }
  permits_.granted_.Wait(
      lock, [&]() REQUIRES(permits_.mu_) { return held_ || cancelled_ || pauses_ > 0; });
  return !cancelled_;
}

void Permit::PutBackLocked() {
  held_ = false;
  held_for_ += Clock::now() - held_since_;
  ++permits_.free_;
}

void Permit::GiveUpLocked() {
  if (held_) {
    PutBackLocked();
    permits_.GrantLocked();
  }
  if (queued_) {
    queued_ = false;
    permits_.waiting_.erase(std::find(permits_.waiting_.begin(), permits_.waiting_.end(), this));
    --permits_.queued_;
    --permits_.jobs_.at(job_).waiting;
  }
  permits_.granted_.NotifyAll();  // so that waits of this partition check again
}

}  // namespace penstock::worker
