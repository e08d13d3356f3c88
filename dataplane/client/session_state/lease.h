// SPDX-License-Identifier: Apache-2.0
// The lease under which a session returns received elements, and the heartbeats that renew it.
// Reason to change: the rules of leases. A value, guarded by the session's lock
// (session/session_parts.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

#include "absl/time/time.h"
#include "control/protocol/client_messages.h"

namespace penstock::client {

class Lease {
 public:
  // The clocks of a client and of its dispatcher may run at rates that differ by one part in this
  // many: NTP corrects the rate of a clock by up to 500 ppm. The client's lease is shorter by this
  // part, so that it is over before the dispatcher gives the client's elements to others.
  static constexpr int64_t kDriftPart = 1000;

  // Call this when a Hello is sent. Heartbeats sent before that will not be answered.
  void OnHello(absl::Time now) {
    unanswered_.clear();
    hello_sent_ = now;
  }
  // Starts the lease at the time of the Hello, and makes a heartbeat due immediately.
  void OnWelcome(const control::Welcome& welcome) {
    length_ = welcome.lease - welcome.lease / kDriftPart;
    interval_ = welcome.heartbeat_interval;
    renewed_ = hello_sent_;
    next_heartbeat_ = absl::InfinitePast();
  }
  bool Holds(absl::Time now) const { return now < renewed_ + length_; }

  absl::Time next_heartbeat() const { return next_heartbeat_; }
  // Plans the next heartbeat. `hint`: the longest interval that the user wants; 0: no limit.
  void PlanHeartbeat(absl::Time now, absl::Duration hint) {
    next_heartbeat_ = now + (hint > absl::ZeroDuration() ? std::min(hint, interval_) : interval_);
  }
  // Returns the number of a heartbeat that is sent now.
  uint64_t Beat(absl::Time now) {
    unanswered_[++heartbeats_] = now;
    return heartbeats_;
  }
  // Renews the lease, which then runs from the sending of the answered heartbeat.
  void OnAnswer(uint64_t heartbeat) {
    const auto sent = unanswered_.find(heartbeat);
    if (sent == unanswered_.end()) return;
    renewed_ = std::max(renewed_, sent->second);
    unanswered_.erase(unanswered_.begin(), std::next(sent));
  }

 private:
  absl::Duration length_;
  absl::Duration interval_;
  absl::Time hello_sent_;
  absl::Time renewed_ = absl::InfinitePast();
  absl::Time next_heartbeat_;
  uint64_t heartbeats_ = 0;
  std::map<uint64_t, absl::Time> unanswered_;  // by number: when the heartbeat was sent
};

}  // namespace penstock::client
