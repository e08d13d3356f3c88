// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/step_times.h"

#include <algorithm>
#include <utility>

namespace penstock::client {
namespace {

std::chrono::microseconds Between(StepTimes::Clock::time_point begin,
                                  StepTimes::Clock::time_point end) {
  return std::chrono::duration_cast<std::chrono::microseconds>(
      std::max(end - begin, StepTimes::Clock::duration(0)));
}

}  // namespace

void StepTimes::Waits() {
  if (!waits_since_.has_value()) waits_since_ = now_();
}

void StepTimes::OnReceived() {
  if (waiting() && !received_at_.has_value()) received_at_ = now_();
}

void StepTimes::Goes(const std::string& worker, const std::string& protocol) {
  const Clock::time_point now = now_();
  const Clock::time_point began = *std::exchange(waits_since_, std::nullopt);
  const Clock::time_point received = std::exchange(received_at_, std::nullopt).value_or(now);
  Counters& counters = CountersOf(worker);
  counters.worker->Add(Between(began, received).count());
  counters.hand_over->Add(Between(received, now).count());
  counters.waits->Add();
  if (counters.lengths == nullptr || counters.protocol != protocol) {
    counters.protocol = protocol;
    counters.lengths = &ProcessMetrics().GetHistogram(
        "penstock_client_wait_seconds",
        "How long Next() waited for an element that was not there, by the protocol it came over.",
        {{"protocol", protocol}});
  }
  counters.lengths->Observe(std::chrono::duration<double>(now - began).count());
  ++counters.waits_here;
  counters.until_received += Between(began, received);
  counters.after_received += Between(received, now);
  waited_ += Between(began, now);
  if (elements_ > 0) waited_since_ += Between(began, now);
}

void StepTimes::BeginSteps() {
  first_ = now_();
  static Histogram& first = ProcessMetrics().GetHistogram(
      "penstock_client_first_element_seconds",
      "From the beginning of a reading to the return of its first element.");
  first.Observe(std::chrono::duration<double>(first_ - made_).count());
}

void StepTimes::CountSteps() {
  if (elements_ == 0) return;
  count_steps_ = false;
  const auto own = Between(first_, now_()) - waited_since_;
  steps_ = {.elements = elements_,
            .own = absl::FromChrono(own),
            .waited = absl::FromChrono(waited_since_)};
}

void StepTimes::Into(control::LinkCounts& link, const std::string& worker) const {
  const auto found = counters_.find(worker);
  if (found == counters_.end()) return;
  link.waits = found->second.waits_here;
  link.waited_until_received = absl::FromChrono(found->second.until_received);
  link.waited_after_received = absl::FromChrono(found->second.after_received);
}

void StepTimes::Account() {
  const Clock::time_point now = now_();
  // The time of a wait that has not ended belongs to neither the trainer's time nor the waits yet.
  const Clock::time_point until = waits_since_.value_or(now);
  static Counter& trainer = ProcessMetrics().GetCounter(
      "penstock_client_trainer_seconds_total",
      "Time in which the trainer was not waiting for an element, of all sessions.");
  trainer.Add(std::max<int64_t>(0, (Between(accounted_, until) - waited_).count()));
  accounted_ = until;
  waited_ = std::chrono::microseconds(0);
}

StepTimes::Counters& StepTimes::CountersOf(const std::string& worker) {
  Counters& counters = counters_[worker];
  if (counters.worker != nullptr) return counters;
  const auto counter = [&](const char* cause) {
    return &ProcessMetrics().GetCounter(
        "penstock_client_waited_seconds_total",
        "Time that Next() waited: for a worker's element to be received, and from then on.",
        {{"worker", worker}, {"cause", cause}});
  };
  counters.worker = counter("worker");
  counters.hand_over = counter("hand_over");
  counters.waits = &ProcessMetrics().GetCounter(
      "penstock_client_waits_total", "Calls of Next() that had to wait, by the worker waited for.",
      {{"worker", worker}});
  return counters;
}

}  // namespace penstock::client
