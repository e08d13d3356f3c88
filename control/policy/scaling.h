// SPDX-License-Identifier: Apache-2.0
// How many workers keep the trainers fed: the smallest number with which they do not wait
// for kFed of their time. From what both ends measure, with the clock of neither:
//
//   a trainer's own time per element s: without waits it takes 1 / s elements a second;
//   a worker's busy time per element b of one of its p partitions: it makes p / b.
//
// Both are medians over some twenty seconds, so that an evaluation, a checkpoint or a
// file that hangs changes nothing; neither depends on how many workers there are now. Where
// a worker's nodes read ahead, its busiest node says what its partitions cannot: how long
// an element takes while they only empty what is ready.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "control/protocol/session_messages.h"
#include "control/state/state.h"

namespace penstock::control {

// Seconds per element of one source, as it counts up: a median over the latest time.
class Pace {
 public:
  // So many elements and so much time since the source began; from `source`. Another source,
  // or one that has less than before, begins anew and adds nothing.
  void Heard(uint64_t source, int64_t elements, absl::Duration time, absl::Time now);
  bool known() const { return !samples_.empty(); }
  double seconds() const { return seconds_; }  // > 0. REQUIRES: known().

 private:
  struct Sample {
    absl::Time at;
    double seconds;
  };
  uint64_t source_ = 0;
  int64_t elements_ = -1;  // as last heard; -1: nothing yet
  absl::Duration time_;
  std::deque<Sample> samples_;
  double seconds_ = 0;
};

// What is heard, and what follows. Not thread-safe; times are given.
class Scaling {
 public:
  // The share of their time in which trainers shall not wait (AU).
  static constexpr double kFed = 0.9;

  struct Estimate {
    int64_t workers = 0;  // wanted; 0: nothing is known
    double need = 0;      // before rounding
    std::map<JobId, JobFeed> jobs;
    bool changed = false;  // `workers`, since the estimate before
    // What it was made from: "train: 31.0 elements/s wanted, 12.4 a worker, 2.3 workers".
    std::string why;
  };

  void OnClientSteps(JobId job, ClientId client, Incarnation incarnation, const StepCounts& steps,
                     absl::Time now);
  void OnWorkerHeartbeat(const State& state, WorkerId worker, const WorkerHeartbeat& beat,
                         absl::Time now);
  // The session is over. What it said counts for a while yet: the next repetition's may follow.
  void ClientLeft(JobId job, ClientId client, absl::Time now);
  void WorkerGone(WorkerId worker);

  // `current`: workers that there are, at most four times as many of which (and 500 more)
  // are asked for. Jobs that are over are forgotten.
  const Estimate& Decide(const State& state, int64_t current, absl::Time now);
  const Estimate& latest() const { return latest_; }

 private:
  struct Client {
    Pace own;
    StepCounts last, before;  // for the share of time
    absl::Time left = absl::InfiniteFuture();
  };
  struct Worker {
    std::map<IterationId, Pace> made;  // of one partition's
    Pace busiest;                      // of the dataset's nodes
    double per_s = 0;                  // 0: not known
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
