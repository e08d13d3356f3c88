// SPDX-License-Identifier: Apache-2.0
// Decides which one of several dispatchers leads. The others are standbys: they wait in Campaign().
//
// A leader may be cut off or stand still without noticing, and lose its place meanwhile. Two things
// protect against such a leader: its journal refuses its records, by term(), and it renews no lease
// of a peer after HoldsUntil().
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace penstock::control {

// Any thread may call any method.
class Leadership {
 public:
  // Called at most once, on a thread of the leadership, when this process no longer leads or cannot
  // find out. The process should end, and may campaign again when it is started again. Must not
  // call the leadership.
  using Lost = std::function<void(const absl::Status& why)>;

  virtual ~Leadership() = default;  // resigns

  // Waits until this process leads. Cancelled after Resign(). Other errors name what must be
  // changed; while the service that decides does not answer, it waits. Call once.
  virtual absl::Status Campaign(Lost lost) = 0;
  // The number of this election: greater than that of every election before. REQUIRES: Campaign()
  // has returned OK.
  virtual uint64_t term() const = 0;
  // The BootTime() until which surely no other process leads. InfinitePast before the election,
  // after Resign() and once the place is lost.
  virtual absl::Time HoldsUntil() const = 0;
  // Gives the place up, so that a standby leads at once, or ends the campaign. Bounded. After this
  // call, `lost` is not called. REQUIRES: this process has stopped to act as the leader.
  virtual void Resign() = 0;
};

}  // namespace penstock::control
