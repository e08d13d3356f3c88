// SPDX-License-Identifier: Apache-2.0
// Limits how many partitions compute at once on a worker. All partitions of an iteration are open.
// A partition that waits for a credit or a split gives its permit to another partition. A partition
// that never waits gives its permit away after every kPermitSlice if it is another partition's
// turn. The next turn is of the waiting job with the highest priority. Waiting jobs of one priority
// take turns in proportion to their weights, regardless of the number of partitions that each job
// has here: start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996), with turns as packets.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>

#include "control/sync/clock.h"
#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "penstock/distribute.h"
#include "penstock/ids.h"

namespace penstock::worker {

class Permit;

// The time for which a permit is held before it is yielded, between two elements, to a waiting
// partition. A slice is long compared with the cost of a thread switch.
inline constexpr std::chrono::milliseconds kPermitSlice{10};

// A worker's permits. Thread-safe. Must outlive every Permit that refers to it.
class Permits {
 public:
  // REQUIRES: count ≥ 1.
  explicit Permits(int count, std::chrono::nanoseconds slice = kPermitSlice);

  int count() const { return count_; }
  int waiting() const { return queued_; }

 private:
  friend class Permit;

  struct Job {
    JobShare share;
    int partitions = 0;
    int waiting = 0;    // of the partitions
    uint64_t used = 0;  // by its turns, each kTurn divided by its weight
    uint64_t turn = 0;  // number of the job's last turn
  };
  // Weights up to 16 divide it, so that turns by usual weights are exact.
  static constexpr uint64_t kTurn = 720'720;

  void QueueLocked(Permit* permit) REQUIRES(mu_);
  void GrantLocked() REQUIRES(mu_);  // hands out free permits
  // Removes and returns the next Permit to grant: of the job whose turn it is, the Permit that has
  // waited longest. REQUIRES: a Permit is waiting.
  Permit* TakeNextLocked() REQUIRES(mu_);

  const int count_;
  const std::chrono::nanoseconds slice_;
  std::atomic<int> queued_ = 0;  // size of waiting_, readable without the lock
  Mutex mu_;
  Condition granted_;
  int free_ GUARDED_BY(mu_);
  std::deque<Permit*> waiting_ GUARDED_BY(mu_);  // in order of arrival
  std::map<JobId, Job> jobs_ GUARDED_BY(mu_);    // jobs with partitions here
  uint64_t turns_ GUARDED_BY(mu_) = 0;
  // By priority: Job::used when the last turn began. A job that begins to wait counts from here, so
  // that it does not make up for turns that it did not need.
  std::map<int64_t, uint64_t> begun_ GUARDED_BY(mu_);
};

// One partition's claim on a permit. Call Take() once, then Pause() and Resume() around each wait.
// The destructor returns the permit. Thread-safe, because a partition that reads ahead waits for
// splits on another thread.
class Permit {
 public:
  // `share`: the same for all partitions of the job.
  Permit(Permits& permits, JobId job, JobShare share = {});
  ~Permit();
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;

  // Waits for a permit. Returns false once cancelled.
  bool Take();
  // Gives the permit to other partitions until Resume() has been called as often as Pause().
  void Pause();
  // Waits for the permit again, unless another thread of this partition is still in a pause.
  // Returns false once cancelled.
  bool Resume();
  // Call this between elements. Returns true if other partitions wait and the permit was held for a
  // slice.
  bool ShouldYield() const;
  // Waits for the next turn, which may be its own again, at once. Returns false once cancelled.
  // REQUIRES: the calling thread took the permit.
  bool Yield();
  // Gives up the permit and ends all present and later waits. Takes no stop token, because this is
  // also called at the end of a partition that nobody stopped.
  void Cancel();

  // Returns the time for which the permit has been held so far, without time in the queue or in
  // pauses.
  std::chrono::nanoseconds held() const;

 private:
  bool WaitLocked(MutexLock& lock) REQUIRES(permits_.mu_);
  void PutBackLocked() REQUIRES(permits_.mu_);  // REQUIRES: held_
  void GiveUpLocked() REQUIRES(permits_.mu_);

  using Clock = SteadyClock;
  Permits& permits_;
  const JobId job_;
  bool held_ GUARDED_BY(&Permits::mu_) = false;
  bool queued_ GUARDED_BY(&Permits::mu_) = false;
  bool cancelled_ GUARDED_BY(&Permits::mu_) = false;
  int pauses_ GUARDED_BY(&Permits::mu_) = 0;
  Clock::time_point held_since_ GUARDED_BY(&Permits::mu_);          // while held_
  std::chrono::nanoseconds held_for_ GUARDED_BY(&Permits::mu_){0};  // in total before held_since_

  friend class Permits;
};

// Pauses `permit` while this object exists. nullptr: does nothing.
class PermitPause {
 public:
  explicit PermitPause(Permit* permit) : permit_(permit) {
    if (permit_ != nullptr) permit_->Pause();
  }
  ~PermitPause() {
    if (permit_ != nullptr) permit_->Resume();
  }
  PermitPause(const PermitPause&) = delete;
  PermitPause& operator=(const PermitPause&) = delete;

 private:
  Permit* permit_;
};

}  // namespace penstock::worker
