// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/merge.h"

#include <utility>

#include "penstock/check.h"

namespace penstock::client {

void Merge::Push(Landed landed) {
  if (order_ == MergeOrder::kDeterministic) {
    ordered_.Push(std::move(landed));
    ++size_;
    return;
  }
  const WorkerId lane = order_ == MergeOrder::kFair ? landed.from : WorkerId();
  lanes_[lane].Push(std::move(landed));
  ++size_;
}

bool Merge::Forget(WorkerId worker) {
  const auto lane = lanes_.find(worker);
  if (lane == lanes_.end()) return true;
  if (!lane->second.empty()) return false;
  lanes_.erase(lane);
  return true;
}

size_t Merge::CountOf(PartitionId partition) const {
  size_t count = 0;
  for (const auto& [worker, lane] : lanes_)
    for (size_t i = 0; i < lane.size(); ++i) count += lane[i].identity.partition == partition;
  return count;
}

std::vector<Landed> Merge::GiveBack(PartitionId partition, size_t keeps) {
  PENSTOCK_CHECK(order_ != MergeOrder::kDeterministic);
  std::vector<Landed> back;
  for (auto& [worker, lane] : lanes_) {
    for (size_t left = lane.size(); left > 0; --left) {
      Landed landed = lane.Pop();
      if (landed.identity.partition != partition || keeps > 0) {
        keeps -= landed.identity.partition == partition;
        lane.Push(std::move(landed));
      } else {
        back.push_back(std::move(landed));
      }
    }
  }
  size_ -= back.size();
  return back;
}

Landed Merge::Pop() {
  PENSTOCK_CHECK(size_ > 0);
  --size_;
  if (order_ == MergeOrder::kDeterministic) return ordered_.Pop();
  auto lane = lanes_.upper_bound(last_);
  for (size_t i = 0; i <= lanes_.size(); ++i) {
    if (lane == lanes_.end()) lane = lanes_.begin();
    if (!lane->second.empty()) break;
    ++lane;
  }
  last_ = lane->first;
  return lane->second.Pop();
}

}  // namespace penstock::client
