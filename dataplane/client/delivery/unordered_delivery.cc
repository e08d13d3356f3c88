// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/delivery/unordered_delivery.h"

#include <utility>

namespace penstock::client {

void UnorderedDelivery::Keep(ReceivedElement&& received) {
  parts_.credits.OnReceived(received.from, static_cast<int64_t>(received.bytes));
  merge_.Push(std::move(received));
}

Delivery::Taken UnorderedDelivery::Pop() {
  Taken taken{.received = merge_.Pop()};
  taken.error = taken.received.error;
  parts_.credits.OnReleased(taken.received.from, static_cast<int64_t>(taken.received.bytes));
  return taken;
}

void SharedDelivery::Keep(ReceivedElement&& received) {
  if (parts_.options.delivery.early_end)
    parts_.ledger.Of(received.identity.partition).OnHanded(received.position);
  UnorderedDelivery::Keep(std::move(received));
}

Delivery::Taken SharedDelivery::Take(bool pending) {
  Taken taken = Pop();
  RecordTaken(taken, pending);
  return taken;
}

std::vector<ReceivedElement> SharedDelivery::GiveBack(PartitionId partition, bool all) {
  const size_t keeps = all ? 0 : (merge_.CountOf(partition) + 1) / 2;
  std::vector<ReceivedElement> back = merge_.GiveBack(partition, keeps);
  for (const ReceivedElement& received : back)
    parts_.credits.OnReleased(received.from, static_cast<int64_t>(received.bytes));
  return back;
}

}  // namespace penstock::client
