// SPDX-License-Identifier: Apache-2.0
// Estimates how many workers keep the trainers fed: the smallest number of workers with which the
// trainers spend at least kFed of their time without waiting. The estimate uses durations that
// trainers and workers measure, and never compares the clocks of two machines:
//
//   a trainer's own time per element s: without waits the trainer takes 1 / s elements a second;
//   a worker's busy time per element b of one of its p partitions: the worker makes p / b a second.
//
// Both times are medians over about twenty seconds, so that an evaluation, a checkpoint or a file
// that hangs changes nothing. Neither time depends on the current number of workers. If a worker's
// nodes read ahead, its partitions may have nothing to do but pass on elements that are ready. Then
// the busiest node determines the time per element.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "control/protocol/dispatcher_status.h"
#include "control/protocol/heartbeat_counts.h"
#include "control/protocol/worker_messages.h"
#include "control/state/state.h"
#include "control/sync/mutex.h"

namespace penstock::control {

// The time per element of one source, in seconds: the median over the latest window. The counts of
// a source only grow.
class Pace {
 public:
  // Records the number of elements and the time since `source` began. If the source is a different
  // one, or if a number is lower than before, a new count begins and no sample is added.
  void Heard(uint64_t source, int64_t elements, absl::Duration time, absl::Time now);
  bool known() const { return !samples_.empty(); }
  double seconds() const { return seconds_; }  // > 0. REQUIRES: known().

 private:
  struct Sample {
    absl::Time at;
    double seconds;
  };
  uint64_t source_ = 0;
  int64_t elements_ = -1;  // as last reported; -1: no report yet
  absl::Duration time_;
  std::deque<Sample> samples_;
  double seconds_ = 0;
};

// Collects measurements and estimates the number of workers. The caller passes the times. Any
// thread may pass measurements; only one thread at a time calls Decide() or latest().
class Scaling {
 public:
  // The wanted share of time in which trainers do not wait (AU).
  static constexpr double kFed = 0.9;

  struct Estimate {
    int64_t workers = 0;  // wanted; 0: unknown
    double need = 0;      // before rounding
    std::map<JobId, JobFeed> jobs;
    bool changed = false;  // `workers` differs from the last estimate
    // The inputs, as text: "train: 31.0 elements/s wanted, 12.4 a worker, 2.3 workers".
    std::string why;
  };

  void OnClientSteps(JobId job, ClientId client, Incarnation incarnation, const StepCounts& steps,
                     absl::Time now);
  void OnWorkerHeartbeat(const State& state, WorkerId worker, const WorkerHeartbeat& beat,
                         absl::Time now);
  // Notes that the client's session is over. Its measurements still count for 15 s, because the
  // session of the next repetition may follow.
  void ClientLeft(JobId job, ClientId client, absl::Time now);
  void WorkerGone(WorkerId worker);

  // Makes a new estimate, and forgets jobs that are over. `current`: the number of workers now. The
  // estimate is at most four times `current`, and at most `current` + 500.
  const Estimate& Decide(const State& state, int64_t current, absl::Time now);
  const Estimate& latest() const { return latest_; }

 private:
  struct Client {
    Pace own;
    StepCounts last, before;  // for the share of time without waits
    absl::Time left = absl::InfiniteFuture();
  };
  struct Worker {
    std::map<IterationId, Pace> made;  // paces of one partition
    Pace busiest;                      // pace of the dataset's busiest node
    double per_s = 0;                  // 0: unknown
    double share = 1;                  // the part of its permits that the job can use
  };
  struct Job {
    std::map<ClientId, Client> clients;
    std::map<WorkerId, Worker> workers;
  };
  JobFeed FeedOf(const JobTerms& terms, const Job& job) const;

  Mutex mu_;
  std::map<JobId, Job> jobs_ GUARDED_BY(mu_);
  Estimate latest_;
};

}  // namespace penstock::control
