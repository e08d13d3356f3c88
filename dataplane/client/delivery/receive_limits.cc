// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/delivery/receive_limits.h"

#include "dataplane/client/session_state/credit_manager.h"

namespace penstock::client {

void ReceiveLimits::OnReceived(int64_t bytes) {
  mean_bytes_ = mean_bytes_ == 0 ? bytes : mean_bytes_ + (bytes - mean_bytes_) / 16;
}

int64_t ReceiveLimits::partition_budget() const {
  const int64_t bytes = bound_bytes_ > 0 ? std::min(max_bytes_, bound_bytes_) : max_bytes_;
  return std::max<int64_t>(
      1, CreditManager::Limit(max_elements_, bytes, mean_bytes_, /*links=*/0) / shares_);
}

std::optional<Index> ReceiveLimits::TakeUpdate(PartitionId partition, Index delivered) {
  Index& advertised = advertised_[partition.value() - 1];
  const int64_t its = partition_budget();
  // An update is sent only if it raises the limit by at least half the budget. This works as well
  // as an update per element, with fewer messages.
  const Index below = delivered + its * stride_;
  if (below - advertised < stride_ * std::max<int64_t>(1, its / 2)) return std::nullopt;
  advertised = below;
  return advertised;
}

}  // namespace penstock::client
