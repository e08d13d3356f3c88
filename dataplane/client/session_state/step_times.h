// SPDX-License-Identifier: Apache-2.0
// Measures how a trainer spends its time: in its own steps, or in Next(). Next() first waits until
// a worker's element has been received, and then until the element is handed over. Metrics:
// penstock_client_waited_seconds_total{worker, cause}, by the worker whose element ended the wait;
// penstock_client_wait_seconds{protocol}, the length of single waits; and
// penstock_client_trainer_seconds_total, all other time. The parts of a wait for a worker are
// reported by that worker (dataplane/worker/link_times.h). Heartbeats report these times to the
// dispatcher, by worker and by whole steps (control::StepCounts).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "control/observe/metrics.h"
#include "control/protocol/heartbeat_counts.h"
#include "control/sync/clock.h"

namespace penstock::client {

// Not thread-safe. Does not read the clock as long as each element is ready when Next() is called.
class StepTimes {
 public:
  using Clock = SteadyClock;
  // Tests pass their own `now`.
  explicit StepTimes(std::function<Clock::time_point()> now = Clock::now)
      : now_(std::move(now)), accounted_(now_()) {}

  // Call this when Next() is called.
  void Called() {
    if (count_steps_) CountSteps();
  }
  // Call this repeatedly while Next() has nothing to return.
  void Waits();
  bool waiting() const { return waits_since_.has_value(); }
  // Returns the time for which Next() has waited so far.
  Clock::duration Waiting() const {
    return waiting() ? now_() - *waits_since_ : Clock::duration::zero();
  }
  // Call this when an element is received that Next() may return.
  void OnReceived();
  // Call this when Next() returns an element of `worker`, received over `protocol`. REQUIRES:
  // waiting().
  void Goes(const std::string& worker, const std::string& protocol);
  // Call this when Next() returns an element, or an error in its place.
  void Returns() {
    if (elements_++ == 0) BeginSteps();
  }
  // Counts, as the trainer's time, the time up to now in which Next() did not wait.
  void Account();
  // Returns the counts of the steps that had ended at the first call of Next() after the previous
  // call of Steps().
  control::StepCounts Steps() {
    count_steps_ = true;
    return steps_;
  }
  // Writes the session's waits for `worker` into the corresponding fields of `link`.
  void Into(control::LinkCounts& link, const std::string& worker) const;

 private:
  struct Counters {
    Counter* worker = nullptr;     // microseconds
    Counter* hand_over = nullptr;  // microseconds
    Counter* waits = nullptr;
    Histogram* lengths = nullptr;  // of waits over `protocol`
    std::string protocol;
    // In this session:
    int64_t waits_here = 0;
    std::chrono::microseconds until_received{0};
    std::chrono::microseconds after_received{0};
  };
  void CountSteps();
  void BeginSteps();
  Counters& CountersOf(const std::string& worker);

  const std::function<Clock::time_point()> now_;
  std::optional<Clock::time_point> waits_since_;
  std::optional<Clock::time_point> received_at_;  // during a wait
  std::map<std::string, Counters> counters_;
  const Clock::time_point made_ = now_();
  Clock::time_point accounted_;
  std::chrono::microseconds waited_{0};  // since accounted_

  int64_t elements_ = 0;
  Clock::time_point first_;                    // when the first element was returned
  std::chrono::microseconds waited_since_{0};  // since first_
  bool count_steps_ = true;                    // at the next Called()
  control::StepCounts steps_;
};

}  // namespace penstock::client
