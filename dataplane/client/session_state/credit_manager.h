// SPDX-License-Identifier: Apache-2.0
// Decides how many elements a client asks for, and from which workers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "penstock/ids.h"

namespace penstock::client {

// Counts the elements that were asked for and the elements that are held, and keeps their sum
// within a number of elements and a number of bytes. Divides free credits among the workers. No
// worker gets more than its share. If a worker has nothing to send and another worker waits for
// credits, the first one gives its credits back. Not thread-safe.
class CreditManager {
 public:
  // `max_elements` 0: the number of elements that fill 8 MiB, but at least 16, at least two per
  // worker, and at most 16,384. A window of fewer bytes than one element has still admits one
  // element.
  CreditManager(int64_t max_elements, int64_t max_bytes)
      : max_elements_(max_elements), max_bytes_(max_bytes) {}

  // Returns the number of elements of `mean_bytes` bytes each (0: not known yet) that fit within
  // both bounds; at least 1.
  static int64_t Limit(int64_t max_elements, int64_t bytes, int64_t mean_bytes, int64_t links);

  void AddLink(WorkerId worker);
  // Frees the credits that the worker still has.
  void RemoveLink(WorkerId worker);

  void OnReceived(WorkerId worker, int64_t bytes);  // asked for → held
  void OnDropped(WorkerId worker);                  // asked for → free
  void OnRecalled(WorkerId worker, int64_t count);  // asked for → free
  void OnReleased(WorkerId worker, int64_t bytes);  // held → free

  struct Grant {
    WorkerId worker;
    int64_t count;
  };
  // The maximum number of elements that one worker is asked for at a time, regardless of the
  // window. A link's Hello lists received elements that the worker may not know of
  // (unacked_receives.h), at up to 40 bytes each. The Hello must not exceed the size that every
  // transport accepts from an unauthenticated client (tcp and ucx: 1 MiB).
  static constexpr int64_t kMostAskedOfOne = 1 << 14;
  using Grants = absl::InlinedVector<Grant, 4>;
  // Returns the numbers of elements to ask for now, and counts these elements as asked for. A grant
  // is at least a portion, unless a worker has no credit left and few elements are held.
  Grants TakeGrants();

  // Returns true if a worker waits for credits while other workers have credits that they may not
  // need. A worker waits if it has no credit and none of its elements is held; a held element would
  // soon free a credit for the worker.
  bool Starving() const;
  // Returns the workers that should give back their credits, because they had credits at the last
  // call already and have sent nothing since. Empty unless Starving().
  absl::InlinedVector<WorkerId, 4> TakeRecalls();

  // Sets a second bound in bytes, in addition to max_bytes; 0: no second bound.
  void BoundBytes(int64_t bytes) {
    bound_bytes_ = bytes;
    OnChange();
  }
  // Returns true if the second bound has prevented a grant since the last call.
  bool TakeWasBound() {
    OnChange();  // TakeGrants() says so again
    return std::exchange(was_bound_, false);
  }

  bool KnowsSizes() const { return mean_bytes_ > 0; }  // true once an element has been received
  // Returns the number of elements of the current mean size that a window with these bounds would
  // hold.
  int64_t LimitOf(int64_t max_elements, int64_t max_bytes) const {
    return Limit(max_elements, max_bytes, mean_bytes_, static_cast<int64_t>(links_.size()));
  }
  int64_t limit() const { return LimitWithin(bytes()); }  // number of elements, at present
  int64_t asked() const { return asked_; }
  // Returns how many times credits must be recalled until each worker has had some.
  int64_t turns() const {
    const int64_t credits = std::max<int64_t>(asked_, 1);
    return (static_cast<int64_t>(links_.size()) + credits - 1) / credits;
  }
  int64_t asked(WorkerId worker) const;  // credits of that worker
  int64_t held() const { return held_; }

 private:
  struct Link {
    WorkerId worker;
    int32_t asked = 0;
    int32_t held = 0;  // too low while elements of the worker's previous link are held
    bool sent_since_recall = false;  // an element that was asked for
    bool recalling = false;
    bool seen_asked = false;  // has had credits since the last TakeRecalls()
    // How many times in a row the worker gave back all its credits. Other workers are preferred
    // until grant number `last_until`.
    int gave_back = 0;
    int64_t last_until = 0;
    int64_t last_grant = 0;  // number of the worker's last grant
  };

  // The worker that gets credits first has the lowest order.
  using Order = std::tuple<bool, int64_t, bool, int64_t, int64_t, WorkerId>;
  struct Candidate {
    Order order;
    Link* link;
    bool operator>(const Candidate& other) const { return order > other.order; }
  };

  // Called after each change on which a grant or Starving() may depend.
  void OnChange() {
    may_grant_ = true;
    starving_.reset();
  }
  std::vector<Link>::iterator PlaceOf(WorkerId worker);  // of its link, or where it would be
  Link* Find(WorkerId worker);                           // nullptr: there is none
  bool ComputeStarving() const;
  void SetCredits(Link& link, int64_t credits);
  void SetGaveBack(Link& link, int times);
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
  bool may_grant_ = true;                 // false: TakeGrants() would return nothing
  mutable std::optional<bool> starving_;  // the answer of Starving(), if it is known
  int64_t mean_bytes_ = 0;                // running mean over elements
  int64_t asked_ = 0;
  int64_t held_ = 0;
  int64_t held_bytes_ = 0;
  int64_t grants_ = 0;
  int64_t without_credits_ = 0;        // the number of links that have none
  int64_t gave_back_ = 0;              // the number of links that have returned all of theirs
  std::vector<Link> links_;            // by worker; TakeGrants() looks at all of them
  std::vector<Candidate> candidates_;  // of TakeGrants(); kept for its memory
};

}  // namespace penstock::client
