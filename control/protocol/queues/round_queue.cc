// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/queues/round_queue.h"

#include "control/protocol/invariant.h"

namespace penstock::protocol {

void RoundQueue::Pop() {
  PENSTOCK_INVARIANT(!agreed_.empty());
  agreed_.pop_front();
  ++delivered_;
}

bool RoundQueue::OnAgreed(int64_t first, const std::vector<Agreed::Round>& rounds) {
  if (first > known()) return rounds.empty();
  for (size_t i = 0; i < rounds.size(); ++i) {
    if (first + static_cast<int64_t>(i) == known()) agreed_.push_back(rounds[i]);
  }
  return true;
}

}  // namespace penstock::protocol
