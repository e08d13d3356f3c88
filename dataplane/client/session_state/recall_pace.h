// SPDX-License-Identifier: Apache-2.0
// Decides when a client looks for workers that have credits and send nothing, so that their credits
// go to workers that wait for some (credit_manager.h).
#pragma once

#include <algorithm>
#include <utility>

#include "absl/time/time.h"

namespace penstock::client {

// While the consumer waits, or may soon have to wait, the client looks after 1 to 4 ms. Each look
// costs a message and an answer for each idle worker, so there are fewer looks, down to one a
// second:
// - While elements are rare. The pause is a part of the time from one element to the next, which
//   delays an element by no more than that part.
// - While the consumer needs no element soon, because many are held.
// Not thread-safe.
class RecallPace {
 public:
  void OnReceived() { received_ = true; }  // an element has come

  // Returns when to look next, which may be `now`. Call it again after each change. `needs`:
  // whether the consumer needs elements soon.
  absl::Time Next(absl::Time now, bool needs) {
    const bool received = std::exchange(received_, false);
    received_at_ = std::min(received_at_, now);  // at first: now
    if (received) gap_ = (3 * gap_ + (now - received_at_)) / 4;
    if (received || !needs) received_at_ = now;
    if (received && needs) pause_ = kFirst;
    longest_ =
        needs ? std::clamp(std::max(gap_, now - received_at_) / kPartOfGap, kLongest, kLongestOfAll)
              : kLongestOfAll;
    pause_ = std::min(pause_, longest_);
    return std::max(now, looked_at_ + pause_);
  }

  // Call this after each look, at the time that Next() returned.
  void OnLook(absl::Time now) {
    looked_at_ = now;
    pause_ = std::min(2 * pause_, longest_);
  }

  // Returns true if the next look may be too late for a consumer that needs elements soon.
  bool late() const { return pause_ > kLongest; }

 private:
  static constexpr absl::Duration kFirst = absl::Milliseconds(1);
  static constexpr absl::Duration kLongest = absl::Milliseconds(4);
  static constexpr absl::Duration kLongestOfAll = absl::Seconds(1);
  static constexpr int kPartOfGap = 16;

  bool received_ = false;
  // When an element came last; later, if none was needed since.
  absl::Time received_at_ = absl::InfiniteFuture();
  absl::Duration gap_;  // from one element to the next, a running mean
  absl::Time looked_at_;
  absl::Duration pause_ = kFirst;  // until the next look
  absl::Duration longest_ = kLongest;
};

}  // namespace penstock::client
