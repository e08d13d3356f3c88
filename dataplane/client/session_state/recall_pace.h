// SPDX-License-Identifier: Apache-2.0
// Decides when a client looks for workers that have credits and send nothing, so that their credits
// go to workers that wait for some (credit_manager.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"

namespace penstock::client {

// While the consumer waits, or may soon have to wait, the client looks after 1 to 4 ms. A look may
// cost a message and an answer for each worker that has credits, so there are fewer looks:
// - The longer no element has come although the consumer needs some. The credits reach all workers
//   within an eighth of that time, so an element is delayed by no more than that.
// - While the consumer needs no element soon, because many are held: one look a second.
// Not thread-safe.
class RecallPace {
 public:
  void OnReceived() { received_ = true; }  // an element has come
  // Call this while no worker waits for credits.
  void OnRest(absl::Time now) {
    received_ = false;
    fruitless_since_ = now;
  }

  // Returns when to look next, which may be `now`; plans that look. Call it after each change, and
  // not only at that time. `needs`: whether the consumer needs elements soon. `turns`: the number
  // of looks after which each worker has had credits.
  absl::Time Plan(absl::Time now, bool needs, int64_t turns) {
    const bool received = std::exchange(received_, false);
    const bool begins = needs && !std::exchange(needed_, needs);
    needed_ = needs;
    if (received || begins || !needs) fruitless_since_ = now;
    if (begins || (received && needs)) pause_ = kFirst;
    longest_ = needs ? std::clamp((now - fruitless_since_) / (kPart * std::max<int64_t>(turns, 1)),
                                  kLongest, kLongestOfAll)
                     : kLongestOfAll;
    pause_ = std::min(pause_, longest_);
    return std::max(now, looked_at_ + pause_);
  }

  // Call this after each look, at the time that Plan() returned.
  void OnLook(absl::Time now) {
    looked_at_ = now;
    pause_ = std::min(2 * pause_, longest_);
  }

  // Returns true if the plan is of a time when the consumer needed no element soon.
  bool may_be_late() const { return !needed_; }

 private:
  static constexpr absl::Duration kFirst = absl::Milliseconds(1);
  static constexpr absl::Duration kLongest = absl::Milliseconds(4);
  static constexpr absl::Duration kLongestOfAll = absl::Seconds(1);
  static constexpr int64_t kPart = 8;

  bool received_ = false;
  bool needed_ = false;
  // No element has come since then, although the consumer needed some and a worker may have had
  // some.
  absl::Time fruitless_since_;
  absl::Time looked_at_;
  absl::Duration pause_ = kFirst;  // until the next look
  absl::Duration longest_ = kLongest;
};

}  // namespace penstock::client
