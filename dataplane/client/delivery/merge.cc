// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/delivery/merge.h"

#include <utility>

#include "penstock/check.h"

namespace penstock::client {

void Merge::Push(ReceivedElement&& received) {
  const WorkerId from = fair_ ? received.from : WorkerId();
  queues_[from].Push(std::move(received));
  ++size_;
}

bool Merge::Forget(WorkerId worker) {
  const auto queue = queues_.find(worker);
  if (queue == queues_.end()) return true;
  if (!queue->second.empty()) return false;
  queues_.erase(queue);
  return true;
}

size_t Merge::CountOf(PartitionId partition) const {
  size_t count = 0;
  for (const auto& [worker, queue] : queues_)
    for (size_t i = 0; i < queue.size(); ++i) count += queue[i].identity.partition == partition;
  return count;
}

std::vector<ReceivedElement> Merge::GiveBack(PartitionId partition, size_t keeps) {
  std::vector<ReceivedElement> back;
  for (auto& [worker, queue] : queues_) {
    for (size_t left = queue.size(); left > 0; --left) {
      ReceivedElement received = queue.Pop();
      if (received.identity.partition != partition || keeps > 0) {
        keeps -= received.identity.partition == partition;
        queue.Push(std::move(received));
      } else {
        back.push_back(std::move(received));
      }
    }
  }
  size_ -= back.size();
  return back;
}

ReceivedElement Merge::Pop() {
  PENSTOCK_CHECK(size_ > 0);
  --size_;
  auto queue = queues_.upper_bound(last_);
  for (size_t i = 0; i <= queues_.size(); ++i) {
    if (queue == queues_.end()) queue = queues_.begin();
    if (!queue->second.empty()) break;
    ++queue;
  }
  last_ = queue->first;
  return queue->second.Pop();
}

}  // namespace penstock::client
