// SPDX-License-Identifier: Apache-2.0
// Tracks when the program calls Next() and how long each call waits, and decides when to log a wait
// or report it to the dispatcher. Reason to change: the measurements and log lines about calls. A
// value, guarded by the session's lock (session_parts.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "control/observe/wait_lines.h"
#include "dataplane/client/session_state/call_pace.h"
#include "dataplane/client/session_state/session_options.h"
#include "dataplane/client/session_state/step_times.h"

namespace penstock::client {

class CallTracker {
 public:
  explicit CallTracker(const SessionOptions& options)
      : lines_(options.events, {{"job", options.job.name}}) {}

  StepTimes& times() { return times_; }
  const CallPace& pace() const { return pace_; }
  bool waiting() const { return times_.waiting(); }
  StepTimes::Clock::duration Waiting() const { return times_.Waiting(); }
  WaitLines& lines() { return lines_; }  // about long waits

  // Call this when Next() is called. Returns true if the session was idle.
  bool OnCall() {
    times_.Called();
    pace_.OnCall();
    ++calls_;
    return std::exchange(idle_, false);
  }
  // Call this regularly.
  void Look(absl::Time now) {
    pace_.Look(now);
    if (calls_ == calls_seen_ && !waiting()) return;
    calls_seen_ = calls_;
    called_ = now;
  }
  // True if nobody has called Next() for a while, and the received elements therefore went to other
  // readers. The session asks for no elements until Next() is called.
  bool idle() const { return idle_; }
  bool CheckIdle(absl::Time now) {
    idle_ = !waiting() && calls_ == calls_seen_ && now >= called_ + kIdleAfter;
    return idle_;
  }

  // Returns true if the session must report now to the dispatcher that Next() waits. `starved`:
  // Next() has nothing to return. Moves `wake` to the time of the next notice, if that is earlier.
  bool MustTellOfWait(bool starved, absl::Time now, absl::Time& wake) {
    if (!waiting() || !starved || absl::FromChrono(Waiting()) < kTellAfter) {
      between_notices_ = absl::ZeroDuration();
      next_notice_ = absl::InfinitePast();
      if (waiting()) wake = std::min(wake, now + kTellAfter);
      return false;
    }
    const bool due = now >= next_notice_;
    if (due) {
      between_notices_ = std::clamp(2 * between_notices_, kTellAfter, kLongestPause);
      next_notice_ = now + between_notices_;
    }
    wake = std::min(wake, next_notice_);
    return due;
  }

 private:
  // A trainer that has not called Next() for this long keeps no elements that other readers wait
  // for.
  static constexpr absl::Duration kIdleAfter = absl::Milliseconds(500);
  // The time for which Next() waits before the dispatcher is notified, and the longest pause
  // between two notices. Each pause is twice as long as the previous one.
  static constexpr absl::Duration kTellAfter = absl::Milliseconds(5);
  static constexpr absl::Duration kLongestPause = absl::Milliseconds(500);

  StepTimes times_;
  CallPace pace_;
  WaitLines lines_;
  int64_t calls_ = 0;
  int64_t calls_seen_ = 0;                    // `calls_` at the last Look()
  absl::Time called_ = absl::InfinitePast();  // when Next() was last called or waiting, roughly
  bool idle_ = false;
  absl::Time next_notice_ = absl::InfinitePast();
  absl::Duration between_notices_;
};

}  // namespace penstock::client
