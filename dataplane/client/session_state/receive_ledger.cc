// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/session_state/receive_ledger.h"

#include <algorithm>
#include <utility>

namespace penstock::client {
namespace {

// A worker may send elements of a partition before the dispatcher's message about the partition
// arrives. At most this many such partitions are accepted, so that the partition numbers that
// workers send cannot use up memory.
constexpr uint64_t kMostUnheard = 1024;

}  // namespace

ReceiveLedger::ReceiveLedger(const std::optional<IndicesByPartition>& restored) {
  if (!restored.has_value()) return;
  for (const auto& [partition, delivered] : *restored)
    receivers_.try_emplace(partition, partition, delivered);
}

protocol::Receiver& ReceiveLedger::Of(PartitionId partition) {
  altered_.insert(partition);
  altered_since_last_.insert(partition);
  return receivers_.try_emplace(partition, partition).first->second;
}

void ReceiveLedger::OnNamed(PartitionId partition) {
  highest_ = std::max(highest_, partition.value());
}

bool ReceiveLedger::Known(PartitionId partition) const {
  return partition && partition.value() <= highest_ + kMostUnheard;
}

void ReceiveLedger::OnWelcome(const control::Welcome& welcome) {
  for (const control::Fence& placed : welcome.placements) {
    protocol::Receiver& receiver = Of(placed.partition);
    receiver.OnWelcome(placed.placement);
    receiver.OnConnected();
    OnNamed(placed.partition);
  }
  for (const auto& [partition, receiver] : receivers_) {
    if (!receiver.delivered().empty() || !receiver.received().empty()) Of(partition).OnConnected();
  }
  completes_ = welcome.partial;
}

void ReceiveLedger::OnHanded(PartitionId partition, Index position) {
  Of(partition).OnHanded(position);
  ++handed_;
}

void ReceiveLedger::OnDelivered(absl::Span<const PendingDelivery> deliveries) {
  for (const PendingDelivery& delivery : deliveries)
    Of(delivery.partition).OnDelivered(delivery.position);
  handed_ -= static_cast<int64_t>(deliveries.size());
  news_ = true;
}

IndicesByPartition ReceiveLedger::Delivered() const {
  IndicesByPartition delivered;
  for (const auto& [partition, receiver] : receivers_) {
    if (!receiver.delivered().empty()) delivered.emplace(partition, receiver.delivered());
  }
  return delivered;
}

std::vector<control::PartitionReport> ReceiveLedger::TakeNews(News news) {
  std::vector<control::PartitionReport> reports;
  for (const PartitionId partition : news == News::kAll ? altered_ : altered_since_last_) {
    protocol::Receiver& receiver = receivers_.at(partition);
    std::optional<protocol::Report> its =
        news == News::kAll ? receiver.News() : receiver.ReceivedNews();
    if (its.has_value()) reports.push_back(*std::move(its));
  }
  if (news == News::kAll) altered_.clear();
  altered_since_last_.clear();
  news_ = false;
  return reports;
}

}  // namespace penstock::client
