// SPDX-License-Identifier: Apache-2.0
// How often workers send heartbeats, by the size of the fleet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace penstock::control {

// How many heartbeats all workers together should send in a second. Each costs the dispatcher 0.1
// to 0.15 ms over gRPC.
inline constexpr int64_t kHeartbeatsPerSecond = 2000;

struct HeartbeatTimes {
  absl::Duration interval;  // between two heartbeats of a worker
  absl::Duration timeout;   // a worker that is silent for this time is dead
  friend bool operator==(const HeartbeatTimes&, const HeartbeatTimes&) = default;
};

// Returns the times for this many workers. They are `configured`, unless the fleet would send more
// heartbeats than it should. Then the interval is longer, but at most half the configured timeout:
// if the fleet becomes small, the configured timeout applies before a worker hears of the shorter
// interval. A worker from which two heartbeats do not arrive still lives.
inline HeartbeatTimes HeartbeatTimesOf(size_t workers, const HeartbeatTimes& configured) {
  const absl::Duration of_many =
      absl::Seconds(static_cast<int64_t>(workers)) / kHeartbeatsPerSecond;
  const absl::Duration interval = std::min(of_many, configured.timeout / 2);
  if (interval <= configured.interval) return configured;
  return {interval, std::max(configured.timeout, 4 * interval)};
}

}  // namespace penstock::control
