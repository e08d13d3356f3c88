// SPDX-License-Identifier: Apache-2.0
// A consumer's side of a coordinated read: which rounds it knows to be agreed on,
// and how many it took. A value; one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "control/protocol/messages.h"

namespace penstock::protocol {

class RoundQueue {
 public:
  // `taken`: rounds that the state contains, one element each.
  explicit RoundQueue(int64_t taken = 0) : taken_(taken) {}

  int64_t taken() const { return taken_; }
  int64_t heard() const { return taken_ + static_cast<int64_t>(agreed_.size()); }
  // The next one; nullptr: it is not agreed on yet.
  const Agreed::Round* Next() const { return agreed_.empty() ? nullptr : &agreed_.front(); }
  void Take();  // REQUIRES: Next()

  // Rounds it knows of are ignored. False: rounds between are missing, which no
  // dispatcher does; none was taken in.
  bool OnAgreed(int64_t first, const std::vector<Agreed::Round>& rounds);

 private:
  int64_t taken_;
  std::deque<Agreed::Round> agreed_;
};

}  // namespace penstock::protocol
