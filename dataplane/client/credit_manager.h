// SPDX-License-Identifier: Apache-2.0
// How many elements a client asks its workers for, and which of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "penstock/ids.h"

namespace penstock::client {

// Counts what was asked for and what is held, so that together they stay within
// a number and a sum of bytes, and divides what is free between the workers: no
// one of them gets more than its share, and one that has nothing to send gives
// back what another waits for. Not thread-safe.
class CreditManager {
 public:
  // `max_elements` 0: as many as make 8 MiB, from 16, or two of each worker, to 16,384. A window
  // that is smaller than one element lets one through.
  CreditManager(int64_t max_elements, int64_t max_bytes)
      : max_elements_(max_elements), max_bytes_(max_bytes) {}

  // So many elements of `mean_bytes` (0: not known yet) are within both bounds; 1 at least.
  static int64_t Limit(int64_t max_elements, int64_t bytes, int64_t mean_bytes, int64_t links);

  void AddLink(WorkerId worker);
  // What it had been asked for is free again.
  void RemoveLink(WorkerId worker);

  void OnReceived(WorkerId worker, int64_t bytes);  // asked for → held
  void OnDropped(WorkerId worker);                  // asked for → free
  void OnRecalled(WorkerId worker, int64_t count);  // asked for → free
  void OnReleased(WorkerId worker, int64_t bytes);  // held → free

  struct Grant {
    WorkerId worker;
    int64_t count;
  };
  // No worker is asked for more at a time, however large the window: what may
  // were received unknown to it has to go into a Hello (unacked_receives.h), at up to 40
  // bytes each, and that into what every transport takes of an unauthenticated client (tcp and
  // ucx: 1 MiB).
  static constexpr int64_t kMostAskedOfOne = 1 << 14;
  using Grants = absl::InlinedVector<Grant, 4>;
  // What is to be asked for now; counts as asked for. In portions, unless a
  // worker has nothing left to send against.
  Grants TakeGrants();

  // True if a worker waits for credits that others have and may not need: one with
  // nothing asked for or held, since what is held of its is soon free for it.
  bool Starving() const;
  // Those who had been asked at the last call already, have sent nothing since, and
  // should give back what they have; empty unless Starving().
  absl::InlinedVector<WorkerId, 4> TakeRecalls();

  // A bound of bytes beside max_bytes, from now on; 0: none.
  void BoundBytes(int64_t bytes) { bound_bytes_ = bytes; }
  // Whether that kept from asking for more since the last call.
  bool TakeWasBound() { return std::exchange(was_bound_, false); }

  bool KnowsSizes() const { return mean_bytes_ > 0; }  // an element was received
  // Elements of the present mean size that such a window would hold.
  int64_t LimitOf(int64_t max_elements, int64_t max_bytes) const {
    return Limit(max_elements, max_bytes, mean_bytes_, static_cast<int64_t>(links_.size()));
  }
  int64_t limit() const { return LimitWithin(bytes()); }  // of elements, at present
  int64_t asked() const { return asked_; }
  int64_t asked(WorkerId worker) const;  // of that one
  int64_t held() const { return held_; }

 private:
  struct Link {
    int64_t asked = 0;
    int64_t held = 0;  // fewer than there are while some of the link before it are
    int64_t received_since_recall = 0;
    int64_t last_grant = 0;  // of all grants, by number
    bool recalling = false;
    bool seen_asked = false;  // at the last call of TakeRecalls(), and ever since
    // Gave back all it had, so often in a row; others come before it until that grant.
    int gave_back = 0;
    int64_t last_until = 0;
  };

  int64_t bytes() const {
    return bound_bytes_ > 0 ? std::min(max_bytes_, bound_bytes_) : max_bytes_;
  }
  int64_t LimitWithin(int64_t bytes) const { return LimitOf(max_elements_, bytes); }
  int64_t FreeWithin(int64_t bytes) const;
  int64_t Free() const { return FreeWithin(bytes()); }

  const int64_t max_elements_;
  const int64_t max_bytes_;
  int64_t bound_bytes_ = 0;
  bool was_bound_ = false;
  int64_t mean_bytes_ = 0;  // of an element, lately
  int64_t asked_ = 0;
  int64_t held_ = 0;
  int64_t held_bytes_ = 0;
  int64_t grants_ = 0;
  std::map<WorkerId, Link> links_;
};

}  // namespace penstock::client
