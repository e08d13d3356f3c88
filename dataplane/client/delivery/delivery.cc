// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/delivery/delivery.h"

#include <limits>
#include <utility>

#include "dataplane/client/delivery/ordered_delivery.h"
#include "dataplane/client/delivery/rounds_delivery.h"
#include "dataplane/client/delivery/unordered_delivery.h"
#include "dataplane/memory/pool.h"
#include "include/status_macros.h"

namespace penstock::client {
namespace {

// The credit windows of a coordinated read and of an ordered merge, in elements. They are wide,
// because other messages limit how far workers may send in these reads. Elements that are kept use
// no credits.
constexpr int64_t kRoundsWindow = 1024;
constexpr int64_t kOrderedWindow = 1 << 15;

}  // namespace

std::unique_ptr<Delivery> Delivery::Make(const Parts& parts) {
  const DeliveryFields& delivery = parts.options.delivery;
  if (delivery.order == MergeOrder::kDeterministic) return std::make_unique<OrderedDelivery>(parts);
  if (delivery.num_consumers.has_value()) return std::make_unique<RoundsDelivery>(parts);
  if (delivery.cross_trainer_cache.has_value()) return std::make_unique<CachedDelivery>(parts);
  return std::make_unique<SharedDelivery>(parts);
}

CreditManager MakeCredits(const SessionOptions& options) {
  constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();
  const DeliveryFields& delivery = options.delivery;
  if (delivery.order == MergeOrder::kDeterministic) return CreditManager(kOrderedWindow, kNoBound);
  if (delivery.num_consumers.has_value()) return CreditManager(kRoundsWindow, kNoBound);
  return CreditManager(options.distribute.max_outstanding_requests,
                       options.distribute.max_outstanding_bytes);
}

protocol::ReceiveResult Delivery::RecordReceived(ReceivedElement& received, Index position) {
  received.position = position;
  return parts_.ledger.Of(received.identity.partition)
      .OnElement(received.identity.placement, position);
}

bool Delivery::MustReportTaken(const StepTimes&) const {
  return parts_.ledger.at_once();
}

void Delivery::RecordTaken(Taken& taken, bool pending) {
  const PartitionId partition = taken.received.identity.partition;
  taken.pending = pending;
  if (pending) {
    parts_.ledger.OnHanded(partition, taken.received.position);
  } else {
    parts_.ledger.Of(partition).OnDelivered(taken.received.position);
  }
}

absl::StatusOr<Element> ElementOf(Delivery::Taken&& taken, const SessionOptions& options) {
  absl::StatusOr<Element> element =
      CopyOutOfFrame(DefaultPool(), std::move(taken.received.element));
  if (!element.ok() || !taken.step.has_value()) return element;
  if (element->IsShared()) {  // the trainer may write into its element
    ASSIGN_OR_RETURN(*element, element->Copy());
  }
  Identity identity = taken.received.identity;
  identity.round = *taken.step;
  identity.consumer = static_cast<int32_t>(*options.delivery.consumer_index);
  element->set_identity(identity);
  return element;
}

}  // namespace penstock::client
