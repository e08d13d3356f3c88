// SPDX-License-Identifier: Apache-2.0
// Replies and messages that wait until their records are durable, in the order of the decisions.
// The core's lock guards it. Its one reason to change: the order and the condition of sending.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "absl/status/status.h"

namespace penstock::control {

class Replies {
 public:
  // Called with OK once the record `sequence` is durable; if it never will be, with the reason.
  using Send = std::function<void(const absl::Status& durable, uint64_t sequence)>;
  struct Pending {
    uint64_t sequence;
    Send send;
  };

  void Add(uint64_t sequence, Send send) { pending_.push_back({sequence, std::move(send)}); }
  // From now on nothing is journaled, for the reason `why`. All replies get that reason.
  void Fail(absl::Status why) { failed_ = std::move(why); }
  const absl::Status& failed() const { return failed_; }

  // Returns false if another thread is delivering. That thread then also sends the caller's
  // replies.
  bool BeginDelivery() { return !std::exchange(delivering_, true); }
  void EndDelivery() { delivering_ = false; }
  // Takes the replies whose records are durable, or all of them after Fail().
  std::deque<Pending> TakeReady(uint64_t durable) {
    std::deque<Pending> ready;
    while (!pending_.empty() && (pending_.front().sequence <= durable || !failed_.ok())) {
      ready.push_back(std::move(pending_.front()));
      pending_.pop_front();
    }
    return ready;
  }

 private:
  std::deque<Pending> pending_;
  bool delivering_ = false;
  absl::Status failed_;
};

}  // namespace penstock::control
