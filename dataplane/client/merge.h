// SPDX-License-Identifier: Apache-2.0
// In which order what has landed is returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "absl/status/status.h"
#include "dataplane/transfer/fifo.h"
#include "penstock/distribute.h"
#include "penstock/element.h"
#include "penstock/ids.h"

namespace penstock::client {

// An element that landed, or an error in the place of one.
struct Landed {
  Identity identity;
  Element element;     // empty for an error
  absl::Status error;  // OK for an element
  WorkerId from;
  size_t bytes = 0;
};

// any: as they landed. fair: one of each worker in turn, as far as there are.
// Elements of one worker stay in their order. Not thread-safe.
class Merge {
 public:
  explicit Merge(MergeOrder order) : order_(order) {}

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  void Push(Landed landed);
  // REQUIRES: !empty().
  Landed Pop();

 private:
  const MergeOrder order_;
  size_t size_ = 0;
  std::map<WorkerId, transfer::Fifo<Landed>> lanes_;  // any: one, of no worker
  WorkerId last_;                                     // whose turn was
};

}  // namespace penstock::client
