// SPDX-License-Identifier: Apache-2.0
// Decides which data of a link is written later, and by when. A frame that is not full waits until
// it has been open for 1 to 2 ms. Elements that follow each other quickly also wait, until there
// are enough bytes to be worth a system call and its packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "dataplane/transfer/tcp/loop.h"

namespace penstock::transfer::tcp {

// Not thread-safe.
class WriteDelay {
 public:
  // Returns true if an element of `bytes` that was just queued waits for more to share its write.
  bool Hold(size_t bytes);
  bool holds() const { return held_bytes_ > 0; }
  // Call this when everything that waits is being written.
  void Release() { held_bytes_ = 0; }

  bool has_deadline() const { return has_deadline_; }
  // A deadline has been set; `frame` is the latest frame at that time.
  void OnDeadlineSet(uint64_t frame) {
    has_deadline_ = true;
    frame_ = frame;
  }
  // The deadline has passed. Returns true if `frame` was opened after the deadline was set.
  bool Expire(uint64_t frame) {
    has_deadline_ = false;
    return frame != frame_;
  }

 private:
  size_t held_bytes_ = 0;  // waiting for more to share the write
  Loop::Clock::time_point last_element_;
  bool has_deadline_ = false;  // for the open frame, or for held bytes
  uint64_t frame_ = 0;         // the latest frame when the deadline was set
};

}  // namespace penstock::transfer::tcp
