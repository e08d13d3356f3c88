// SPDX-License-Identifier: Apache-2.0
// Estimates how often the program calls Next().
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace penstock::client {

// The mean time between calls of the last second, waits included. After a slower second it is
// longer by a tenth at most, because a program that has paused, or takes many elements at once, may
// soon be as fast as before. Not thread-safe.
class CallPace {
 public:
  void OnCall() { ++calls_; }
  // Call this regularly.
  void Look(absl::Time now) {
    if (now < since_ + kTime) return;
    if (since_ != absl::InfinitePast()) {
      const absl::Duration measured = (now - since_) / std::max<int64_t>(calls_, 1);
      between_ =
          between_ == absl::ZeroDuration() ? measured : std::min(measured, kSlower * between_);
    }
    since_ = now;
    calls_ = 0;
  }
  // Returns how long that many elements last at this pace. Zero in the first second.
  absl::Duration TimeFor(int64_t elements) const { return elements * between_; }

 private:
  static constexpr absl::Duration kTime = absl::Seconds(1);
  static constexpr double kSlower = 1.1;

  absl::Time since_ = absl::InfinitePast();
  int64_t calls_ = 0;       // since then
  absl::Duration between_;  // two calls; zero: not measured yet
};

}  // namespace penstock::client
