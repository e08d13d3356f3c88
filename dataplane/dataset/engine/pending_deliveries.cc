// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/pending_deliveries.h"

#include <algorithm>
#include <utility>

#include "control/sync/simulation.h"

namespace penstock {
namespace {

thread_local PendingDeliveries* current = nullptr;
[[maybe_unused]] const FiberVariable kCurrentOfFiber(current);

}  // namespace

absl::Status PendingDeliveries::Deliver() {
  absl::Status first;
  absl::Span<const PendingDelivery> rest = deliveries_;
  while (!rest.empty()) {  // consecutive elements of one source together
    const auto end = std::find_if(rest.begin(), rest.end(), [&](const PendingDelivery& delivery) {
      return delivery.from != rest.front().from;
    });
    const size_t count = static_cast<size_t>(end - rest.begin());
    first.Update(rest.front().from->OnDelivered(rest.first(count)));
    rest.remove_prefix(count);
  }
  deliveries_.clear();
  return first;
}

void PendingDeliveries::GoOn() {
  if (deliveries_.empty()) return;
  if (current == nullptr) return Deliver().IgnoreError();  // their source reports the error again
  current->Append(*this);
  deliveries_.clear();
}

PendingDeliveries* PendingDeliveries::Current() {
  return current;
}

PendingDeliveries::Scope::Scope(PendingDeliveries* into) : before_(std::exchange(current, into)) {}

PendingDeliveries::Scope::~Scope() {
  current = before_;
}

}  // namespace penstock
