// SPDX-License-Identifier: Apache-2.0
// What readers have said about one partition. Only the readers that have said something that
// matters have an entry: in an iteration with audiences, most readers have none.
#pragma once

#include <algorithm>
#include <cstddef>

#include "absl/container/inlined_vector.h"
#include "control/protocol/index_set.h"
#include "penstock/ids.h"

namespace penstock::protocol {

// One reader's reports about one partition since the dispatcher started.
struct AckState {
  Placement at;       // the newest placement that it answered; none: it answered none
  IndexSet reported;  // delivered or received
  // In a shared iteration: indices for which the end need not wait, because they are delivered, or
  // will be once the reader is notified of the end. These are the indices that were handed on and,
  // under CommitPolicy::kExplicit, the delivered indices. Under other policies, delivered indices
  // are committed, and are not in this set.
  IndexSet claimed;
  // In an ordered merge: this reader has room for indices below this limit.
  Index receive_limit = 0;
};

// The AckStates of one partition, by the readers' positions in the record.
class AckStates {
 public:
  struct Entry {
    size_t reader;
    AckState ack;
  };

  // Returns the reader's state; an empty one if it has none.
  const AckState& Of(size_t reader) const;
  // Returns the reader's state. Adds an empty one if it has none.
  AckState& At(size_t reader);
  bool Has(size_t reader) const;
  void Erase(size_t reader);
  // Erases the entries for which `drop` returns true.
  template <class Drop>
  void EraseIf(const Drop& drop) {
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), drop), entries_.end());
  }
  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }  // ascending
  auto end() const { return entries_.end(); }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }

 private:
  absl::InlinedVector<Entry, 2> entries_;  // ascending
};

}  // namespace penstock::protocol
