// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/receiver.h"

#include <algorithm>
#include <utility>

#include "penstock/check.h"

namespace penstock::protocol {

Receiver::Receiver(PartitionId partition, IndexSet delivered, Broken broken)
    : partition_(partition),
      broken_(broken),
      delivered_(std::move(delivered)),
      unreported_delivered_(delivered_) {}

ReceiveResult Receiver::OnElement(Placement placement, Index index) {
  if (placement < lowest_ && broken_ != Broken::kAcceptOldPlacements)
    return ReceiveResult::kOldPlacement;
  if (delivered_.Contains(index) || received_.Contains(index)) return ReceiveResult::kAlreadyHere;
  received_.Add(index);
  unreported_received_.Add(index);
  return ReceiveResult::kAccepted;
}

void Receiver::OnHanded(Index index) {
  PENSTOCK_CHECK(received_.Contains(index));
  handed_.Add(index);
  unreported_handed_.Add(index);
}

void Receiver::OnDelivered(Index index) {
  PENSTOCK_CHECK(received_.Contains(index));
  const IndexSet one = IndexSet::Of(index, index + 1);
  received_.Remove(one);
  unreported_received_.Remove(one);
  if (!handed_.empty()) {
    handed_.Remove(one);
    unreported_handed_.Remove(one);
  }
  delivered_.Add(index);
  unreported_delivered_.Add(index);
}

IndexSet Receiver::AllIndices() const {
  IndexSet has = delivered_;
  has.Add(received_);
  return has;
}

Report Receiver::TakeReport() {
  owes_report_ = false;
  Report report{.partition = partition_,
                .placement = lowest_,
                .delivered = std::move(unreported_delivered_),
                .received = std::move(unreported_received_),
                .handed = std::move(unreported_handed_),
                .whole = std::exchange(whole_, false)};
  unreported_delivered_.clear();
  unreported_received_.clear();
  unreported_handed_.clear();
  return report;
}

Report Receiver::OnFence(Placement placement, const IndexSet& returns) {
  // The dispatcher may already have assigned the partition because of the earlier answer for this
  // placement.
  if (placement <= lowest_ && broken_ != Broken::kGiveBackTwice) return TakeReport();
  lowest_ = placement;
  PENSTOCK_CHECK(received_.Contains(returns) && !handed_.Intersects(returns));
  if (broken_ != Broken::kGiveBackAndKeep) {
    received_.Remove(returns);
    unreported_received_.Remove(returns);
  }
  Report report = TakeReport();
  report.returned = returns;
  return report;
}

void Receiver::OnWelcome(Placement placement) {
  lowest_ = std::max(lowest_, placement);
}

std::optional<Report> Receiver::News() {
  if (!owes_report_ && unreported_delivered_.empty() && unreported_received_.empty() &&
      unreported_handed_.empty())
    return std::nullopt;
  return TakeReport();
}

std::optional<Report> Receiver::ReceivedNews() {
  if (whole_) return TakeReport();
  if (unreported_received_.empty()) return std::nullopt;
  Report report{.partition = partition_,
                .placement = lowest_,
                .delivered = {},
                .received = std::move(unreported_received_)};
  unreported_received_.clear();
  return report;
}

void Receiver::OnConnected() {
  owes_report_ = whole_ = true;
  unreported_delivered_ = delivered_;
  unreported_received_ = received_;
  unreported_handed_ = handed_;
}

}  // namespace penstock::protocol
