// SPDX-License-Identifier: Apache-2.0
// Elements that Distribute gave to nodes behind it. Each is delivered (docs/exactly_once.md) when
// the outermost Next() returns what was made of it: until then it is pending. What is pending goes
// along with what the nodes give, by thread: a node that gives something before its Next() returns
// does nothing for that; one that holds elements back keeps theirs (PositionedInput::Holds).
#pragma once

#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/ids.h"

namespace penstock {

struct PendingDelivery;

// Who gave elements, and must know when they are delivered.
class GivesElements {
 public:
  virtual ~GivesElements() = default;
  // The program gets them now. Waits while they may not be returned. An error: they never may be,
  // since they are others' or the reading was stopped. Any thread.
  virtual absl::Status OnDelivered(absl::Span<const PendingDelivery> deliveries) = 0;
};

struct PendingDelivery {
  GivesElements* from;  // outlives the iterator
  PartitionId partition;
  Index position;  // in the sets of what a client has
};

class PendingDeliveries {
 public:
  void Add(const PendingDelivery& delivery) { deliveries_.push_back(delivery); }
  void Append(const PendingDeliveries& more) {
    deliveries_.insert(deliveries_.end(), more.deliveries_.begin(), more.deliveries_.end());
  }
  bool empty() const { return deliveries_.empty(); }
  void clear() { deliveries_.clear(); }

  // Delivers all; it is empty after that. The first error; the others are delivered all the same.
  absl::Status Deliver();
  // As part of what this thread gives now; delivered, if nobody behind it counts that.
  void GoOn();

  // Where what this thread gets is counted; nullptr: nowhere, and it is delivered when it is given.
  static PendingDeliveries* Current();
  // As long as it lives, that is `into`. Scopes of a thread end in the reverse order.
  class Scope {
   public:
    explicit Scope(PendingDeliveries* into);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PendingDeliveries* const before_;
  };

 private:
  absl::InlinedVector<PendingDelivery, 1> deliveries_;
};

}  // namespace penstock
