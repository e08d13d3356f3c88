// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/link_times.h"

#include <utility>

namespace penstock::worker {
namespace {

std::shared_ptr<Counter> CounterOf(const std::string& client, const char* waits_for) {
  return ProcessMetrics().ShareCounter(
      "penstock_worker_link_seconds_total",
      "Seconds that links to clients waited for production, transport, or the trainer, by cause.",
      {{"client", client}, {"waits_for", waits_for}});
}

}  // namespace

LinkTimes::LinkTimes(const std::string& client, std::function<Clock::time_point()> now)
    : counters_{CounterOf(client, "produce"), CounterOf(client, "transport"),
                CounterOf(client, "trainer")},
      now_(std::move(now)),
      since_(now_()) {}

void LinkTimes::Now(LinkWaitsFor what) {
  const LinkWaitsFor before = std::exchange(present_, what);
  const Clock::time_point now = now_();
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(now - since_);
  since_ += time;  // fractions of a microsecond are kept
  counters_[static_cast<size_t>(before)]->Add(time.count());
}

}  // namespace penstock::worker
