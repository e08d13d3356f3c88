// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/ahead.h"

#include "dataplane/client/window.h"

namespace penstock::client {

void Ahead::OnLanded(int64_t bytes) {
  mean_bytes_ = mean_bytes_ == 0 ? bytes : mean_bytes_ + (bytes - mean_bytes_) / 16;
}

int64_t Ahead::room() const {
  const int64_t bytes = bound_bytes_ > 0 ? std::min(max_bytes_, bound_bytes_) : max_bytes_;
  return std::max<int64_t>(1,
                           Window::Limit(max_elements_, bytes, mean_bytes_, /*links=*/0) / shares_);
}

std::optional<Index> Ahead::News(PartitionId partition, Index taken) {
  Index& told = told_[partition.value() - 1];
  const int64_t its = room();
  // Word of half of it is as good, and half as much to say.
  const Index below = taken + its * stride_;
  if (below - told < stride_ * std::max<int64_t>(1, its / 2)) return std::nullopt;
  told = below;
  return told;
}

}  // namespace penstock::client
