// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/placing/candidates.h"

#include "control/protocol/invariant.h"

namespace penstock::control {

const WorkerOrder* Candidates::Order(size_t avoided) const {
  if (some_ || iteration_.division.count > 0) return nullptr;
  return &orders_.Of(iteration_, context_, avoided);
}

bool Candidates::SomebodyHasRoom() const {
  if (const WorkerOrder* order = Order())
    return control::SomebodyHasRoom(state_, iteration_, *order);
  return control::SomebodyHasRoom(state_, iteration_, counts_, list());
}

WorkerId Candidates::Choose(PartitionId partition, absl::Span<const WorkerId> avoid) const {
  const WorkerOrder* order = Order(avoid.size());
  if (order == nullptr) return ChooseWorker(state_, iteration_, counts_, partition, list(), avoid);
  const WorkerId chosen = ChooseWorker(state_, iteration_, *order, avoid);
  PENSTOCK_INVARIANT(!orders_.checks_kept() ||
                     chosen == ChooseWorker(state_, iteration_, counts_, partition, list(), avoid));
  return chosen;
}

std::vector<PartitionId> Candidates::ToRelieve() const {
  // Each partition may go to a worker that has none yet.
  const WorkerOrder* order = Order(iteration_.record.partitions.size());
  if (order == nullptr) return PartitionsToRelieve(state_, iteration_, context_, list());
  std::vector<PartitionId> movable = PartitionsToRelieve(state_, iteration_, context_, *order);
  PENSTOCK_INVARIANT(!orders_.checks_kept() ||
                     movable == PartitionsToRelieve(state_, iteration_, context_, list()));
  return movable;
}

}  // namespace penstock::control
