// SPDX-License-Identifier: Apache-2.0
// Measures what a link to a client waits for. At each moment the link waits for exactly one of the
// three values of LinkWaitsFor, so that the times add up to the link's lifetime. Metric
// penstock_worker_link_seconds_total{client, waits_for}.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "control/observe/metrics.h"
#include "control/sync/clock.h"

namespace penstock::worker {

enum class LinkWaitsFor : uint8_t {
  kProduce = 0,    // for production of the next element
  kTransport = 1,  // for elements in transit
  kTrainer = 2,    // for a credit: the client has received everything sent, and gave none
};

// Not thread-safe. `client`: the label, which the sessions of one client share.
class LinkTimes {
 public:
  using Clock = SteadyClock;
  // Tests pass their own `now`.
  explicit LinkTimes(const std::string& client,
                     std::function<Clock::time_point()> now = Clock::now);

  // Records that the link waits for `what` from now on. The time up to now counts for the previous
  // value.
  void Now(LinkWaitsFor what);

 private:
  std::array<std::shared_ptr<Counter>, 3> counters_;
  const std::function<Clock::time_point()> now_;
  LinkWaitsFor present_ = LinkWaitsFor::kProduce;
  Clock::time_point since_;
};

}  // namespace penstock::worker
