// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/delivery/ordered_delivery.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::client {

OrderedDelivery::OrderedDelivery(const Parts& parts)
    : Delivery(parts),
      limits_(parts.options.distribute.max_outstanding_requests,
              parts.options.distribute.max_outstanding_bytes) {}

protocol::ReceiveResult OrderedDelivery::OnElement(ReceivedElement& received) {
  const Identity& identity = received.identity;
  if (!merge_.Expects(identity.partition, identity.index))
    return protocol::ReceiveResult::kOldPlacement;
  return RecordReceived(received, merge_.queue().positions().RowOf(identity.index));
}

void OrderedDelivery::Keep(ReceivedElement&& received) {
  parts_.credits.OnDropped(received.from);
  limits_.OnReceived(static_cast<int64_t>(received.bytes));
  merge_.Push(std::move(received));
}

Delivery::Taken OrderedDelivery::Take(bool pending) {
  Taken taken{.received = merge_.Pop()};
  const Identity& identity = taken.received.identity;
  taken.error = taken.received.error;
  RecordTaken(taken, pending);
  SendReceiveLimit(identity.partition);
  if (parts_.options.delivery.num_consumers.has_value())
    taken.step = merge_.queue().positions().StepOf(identity.partition, identity.index);
  return taken;
}

absl::Status OrderedDelivery::OnWelcome(const control::Welcome& welcome) {
  if (welcome.passed.empty() || welcome.passed.size() != welcome.placements.size())
    return absl::InternalError("the dispatcher did not report where the order begins");
  const DeliveryFields& delivery = parts_.options.delivery;
  const protocol::Positions positions{.partitions = static_cast<int64_t>(welcome.passed.size()),
                                      .consumers = delivery.num_consumers.value_or(1),
                                      .first = welcome.first};
  const int64_t most = parts_.options.distribute.max_outstanding_requests;
  const int64_t shares = positions.shares();
  if (most > 0 && most < shares) {
    return absl::InvalidArgumentError(absl::StrCat(
        "order kDeterministic takes an element of each of ", shares,
        " partitions in turn: max_outstanding_requests must be at least that, not ", most));
  }
  merge_.Open(positions, delivery.consumer_index.value_or(0), welcome.passed);
  limits_.Open(welcome.passed.size(), shares, positions.stride());
  limits_.Forget();
  parts_.others.ForgetWait();
  for (size_t p = 0; p < welcome.passed.size(); ++p) SendReceiveLimit(PartitionId(p + 1));
  return absl::OkStatus();
}

void OrderedDelivery::OnMembership(const control::Membership& membership) {
  limits_.BoundBytes(membership.max_bytes_in_flight);
  for (const control::Membership::Partition& partition : membership.partitions) {
    if (partition.end.has_value()) merge_.SetEnd(partition.partition, *partition.end);
  }
}

void OrderedDelivery::OnEnd(const control::End& end) {
  Delivery::OnEnd(end);
  merge_.SetAllEnded();
}

void OrderedDelivery::SendReceiveLimit(PartitionId partition) {
  if (!parts_.dispatcher.welcomed()) return;  // all limits are sent again after the next Welcome
  const std::optional<Index> next = merge_.queue().NextOf(partition);
  if (!next) return;  // this consumer gets no element of the partition
  if (const std::optional<Index> below = limits_.TakeUpdate(partition, *next))
    parts_.dispatcher.Send(control::ReceiveLimit{{{partition, *below}}});
}

}  // namespace penstock::client
