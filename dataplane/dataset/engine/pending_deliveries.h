// SPDX-License-Identifier: Apache-2.0
// Elements that Distribute passed to the nodes after it. Each is delivered (docs/exactly_once.md)
// when the outermost Next() returns the element that was made from it; until then it is pending.
// Pending deliveries are collected per thread and accompany the nodes' results. A node that returns
// its result in the same Next() need not handle them; a node that holds elements back keeps their
// deliveries (PositionedInput::Holds).
#pragma once

#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/ids.h"

namespace penstock {

struct PendingDelivery;

// A source of elements that is notified when its elements are delivered.
class GivesElements {
 public:
  virtual ~GivesElements() = default;
  // Called when the program receives these elements. Waits until they may be returned. An error
  // means that they may never be returned, because they belong to other consumers or reading was
  // stopped. Any thread.
  virtual absl::Status OnDelivered(absl::Span<const PendingDelivery> deliveries) = 0;
};

struct PendingDelivery {
  GivesElements* from;  // outlives the iterator
  PartitionId partition;
  Index position;  // as the client counts elements: an index or a row
};

class PendingDeliveries {
 public:
  void Add(const PendingDelivery& delivery) { deliveries_.push_back(delivery); }
  void Append(const PendingDeliveries& more) {
    deliveries_.insert(deliveries_.end(), more.deliveries_.begin(), more.deliveries_.end());
  }
  bool empty() const { return deliveries_.empty(); }
  void clear() { deliveries_.clear(); }

  // Delivers all elements; the object is then empty. Returns the first error; the other elements
  // are delivered nevertheless.
  absl::Status Deliver();
  // Adds these deliveries to the current result of this thread, or delivers the elements at once if
  // no node after this one counts them.
  void GoOn();

  // Returns the object that collects this thread's pending deliveries. nullptr if there is none:
  // each element is then delivered as soon as Distribute passes it on.
  static PendingDeliveries* Current();
  // Makes `into` the current object while this object lives. A thread's scopes end in reverse
  // order.
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
