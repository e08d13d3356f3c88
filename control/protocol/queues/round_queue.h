// SPDX-License-Identifier: Apache-2.0
// A consumer's side of a coordinated read: the rounds that the consumer knows to be agreed on, and
// the number of rounds that it has delivered. A value; used by one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "control/protocol/messages.h"

namespace penstock::protocol {

class RoundQueue {
 public:
  // `delivered`: the number of rounds that the state contains, one element each.
  explicit RoundQueue(int64_t delivered = 0) : delivered_(delivered) {}

  int64_t delivered() const { return delivered_; }
  int64_t known() const { return delivered_ + static_cast<int64_t>(agreed_.size()); }
  // Returns the next round; nullptr if the consumer does not know yet that it is agreed on.
  const Agreed::Round* Next() const { return agreed_.empty() ? nullptr : &agreed_.front(); }
  void Pop();  // REQUIRES: Next() != nullptr

  // Adds those of `rounds` that are new. Returns false, and adds none, if rounds before them are
  // missing; no correct dispatcher leaves rounds out.
  bool OnAgreed(int64_t first, const std::vector<Agreed::Round>& rounds);

 private:
  int64_t delivered_;
  std::deque<Agreed::Round> agreed_;
};

}  // namespace penstock::protocol
