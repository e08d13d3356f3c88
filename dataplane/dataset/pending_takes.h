// SPDX-License-Identifier: Apache-2.0
// Elements that Distribute gave to the nodes behind it. Each is taken (docs/exactly_once.md) when
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

struct PendingTake;

// Who gave elements, and must know when they are taken.
class GivesElements {
 public:
  virtual ~GivesElements() = default;
  // The program gets them now. Waits while they may not be returned. An error: they never may be,
  // since they are others' or the reading was stopped. Any thread.
  virtual absl::Status OnTaken(absl::Span<const PendingTake> takes) = 0;
};

struct PendingTake {
  GivesElements* from;  // outlives the iterator
  PartitionId partition;
  Index position;  // in the sets of what a client has
};

class PendingTakes {
 public:
  void Add(const PendingTake& take) { takes_.push_back(take); }
  void Append(const PendingTakes& more) {
    takes_.insert(takes_.end(), more.takes_.begin(), more.takes_.end());
  }
  bool empty() const { return takes_.empty(); }
  void clear() { takes_.clear(); }

  // All are taken now; it is empty behind that. The first error; the others are taken all the same.
  absl::Status Take();
  // As part of what this thread gives now; taken, if nobody behind it counts that.
  void GoOn();

  // Where what this thread gets is counted; nullptr: nowhere, and it is taken when it is given.
  static PendingTakes* Current();
  // As long as it lives, that is `into`. Scopes of a thread end in the reverse order.
  class Scope {
   public:
    explicit Scope(PendingTakes* into);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PendingTakes* const before_;
  };

 private:
  absl::InlinedVector<PendingTake, 1> takes_;
};

}  // namespace penstock
