// SPDX-License-Identifier: Apache-2.0
// Estimates how many workers keep the trainers fed: the smallest number with which the trainers do
// not wait for kFed of their time. It uses measurements from both ends, but the clock of neither:
//
//   a trainer's own time per element s: without waits it takes 1 / s elements a second;
//   a worker's busy time per element b of one of its p partitions: it makes p / b.
//
// Both are medians over about twenty seconds, so that an evaluation, a checkpoint or a file that
// hangs changes nothing. Neither depends on the number of workers now. If a worker's nodes read
// ahead, its partitions may only drain elements that are ready; then its busiest node determines
// how long an element takes.
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

namespace penstock::control {

// Seconds per element of one source, whose counts only grow: the median over the latest window.
class Pace {
 public:
  // Records the elements and the time since `source` began. A different source, or lower numbers
  // than before, starts a new count and adds no sample.
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

// Collects measurements and estimates the number of workers. Not thread-safe; the caller passes the
// times.
class Scaling {
 public:
  // The share of their time in which trainers must not wait (AU).
  static constexpr double kFed = 0.9;

  struct Estimate {
    int64_t workers = 0;  // wanted; 0: unknown
    double need = 0;      // before rounding
    std::map<JobId, JobFeed> jobs;
    bool changed = false;  // `workers` differs from the last estimate
    // The inputs: "train: 31.0 elements/s wanted, 12.4 a worker, 2.3 workers".
    std::string why;
  };

  void OnClientSteps(JobId job, ClientId client, Incarnation incarnation, const StepCounts& steps,
                     absl::Time now);
  void OnWorkerHeartbeat(const State& state, WorkerId worker, const WorkerHeartbeat& beat,
                         absl::Time now);
  // The session is over. Its measurements count for 15 s longer, because the session of the next
  // repetition may follow.
  void ClientLeft(JobId job, ClientId client, absl::Time now);
  void WorkerGone(WorkerId worker);

  // `current` is the number of workers now; the estimate is at most four times `current`, and at
  // most `current` + 500. Jobs that are over are forgotten.
  const Estimate& Decide(const State& state, int64_t current, absl::Time now);
  const Estimate& latest() const { return latest_; }

 private:
  struct Client {
    Pace own;
    StepCounts last, before;  // for the share of time in which it does not wait
    absl::Time left = absl::InfiniteFuture();
  };
  struct Worker {
    std::map<IterationId, Pace> made;  // of one partition
    Pace busiest;                      // of the dataset's nodes
    double per_s = 0;                  // 0: unknown
    double share = 1;                  // of its permits that the job can use
  };
  struct Job {
    std::map<ClientId, Client> clients;
    std::map<WorkerId, Worker> workers;
  };
  JobFeed FeedOf(const JobTerms& terms, const Job& job) const;

  std::map<JobId, Job> jobs_;
  Estimate latest_;
};

}  // namespace penstock::control
